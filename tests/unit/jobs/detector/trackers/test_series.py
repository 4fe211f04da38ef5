import pytest

from jobs.detector.model.protocol import Turn
from jobs.detector.rules import Rule
from jobs.detector.saved_state import NOTHING
from jobs.detector.trackers.series import SeriesTracker
from tests.unit.jobs.detector.trackers.world import FIRST, inputs, judgement

NOBODY: set[int] = set()


@pytest.fixture
def tracker() -> SeriesTracker:
    return SeriesTracker(inputs(), NOTHING)


def test_the_strongest_series_of_a_machine_speaks_for_the_others(tracker: SeriesTracker) -> None:
    (start,) = tracker.judge(judgement({0: 15.0, 1: 20.0, 2: 7.0}), 1, FIRST, NOBODY)
    assert (start["phase"], start["verdict"], start["series"], start["machine"]) == ("start", "anomaly", "disk", "vm-0")
    assert [one["series"] for one in start["contributors"]] == ["disk", "cpu", "net"]
    assert list(tracker.rows()) == [1]


def test_each_machine_has_a_novelty_of_its_own_but_busy_ones(tracker: SeriesTracker) -> None:
    found = tracker.judge(judgement({0: 15.0, 3: 15.0}), 1, FIRST, {0})
    assert [start["machine"] for start in found] == ["vm-1"]


def test_an_operators_overrides_let_the_next_strongest_speak(tracker: SeriesTracker) -> None:
    tracker.inputs.overrides.call_normal(1, observed=9.0, expected=5.0)
    tracker.inputs.overrides.rules["r"] = Rule(series="cpu")
    (start,) = tracker.judge(judgement({0: 18.0, 1: 20.0, 2: 16.0}), 1, FIRST, NOBODY)
    assert start["series"] == "net"


@pytest.mark.parametrize(
    ("turn", "phase", "verdict", "is_open"),
    [
        (Turn.CHANGED, "update", "state_change", True),
        (Turn.PASSED, "end", "anomaly", False),
        (Turn.LEARNED, "end", "anomaly", False),
    ],
)
def test_turns_of_its_episode_update_or_end_a_novelty(
    tracker: SeriesTracker, turn: Turn, phase: str, verdict: str, is_open: bool
) -> None:
    (start,) = tracker.judge(judgement({1: 20.0}), 1, FIRST, NOBODY)
    (later,) = tracker.judge(judgement({}, turns={1: turn}), 1, FIRST + 9, NOBODY)
    assert (later["id"], later["phase"], later["verdict"]) == (start["id"], phase, verdict)
    assert (list(tracker.rows()) == [1]) is is_open


def test_a_change_of_state_that_reverts_is_undone(tracker: SeriesTracker) -> None:
    for window, turns in enumerate(({}, {1: Turn.CHANGED}, {1: Turn.UNDONE})):
        *_, last = tracker.judge(judgement({} if turns else {1: 20.0}, turns=turns), 1, FIRST + window, NOBODY)
    assert (last["phase"], last["verdict"]) == ("end", "anomaly")
    assert last["text"].startswith("the change of state is undone: disk on vm-0")


def test_what_grew_too_slowly_for_an_anomaly_is_a_change_of_state_once_it_stays(tracker: SeriesTracker) -> None:
    first = FIRST + 100
    settled = judgement({1: 20.0}, turns={1: Turn.CHANGED})
    (start,) = tracker.judge(settled, 1, first, NOBODY)
    assert (start["phase"], start["verdict"], start["series"]) == ("start", "state_change", "disk")
    settings = tracker.inputs.settings
    assert start["time_unix_nano"] - start["since_unix_nano"] == (settings.settle_windows - 1) * settings.window_nano
    assert start["text"].startswith("disk on vm-0 stays near 9")
    (end,) = tracker.judge(judgement({}, turns={1: Turn.UNDONE}), 1, first + 9, NOBODY)
    assert (end["id"], end["phase"], end["verdict"]) == (start["id"], "end", "anomaly")


def test_an_anomaly_that_stays_is_told_once(tracker: SeriesTracker) -> None:
    (start,) = tracker.judge(judgement({1: 20.0}), 1, FIRST, NOBODY)
    (change,) = tracker.judge(judgement({1: 20.0}, turns={1: Turn.CHANGED}), 1, FIRST + 9, NOBODY)
    assert (change["id"], change["phase"], change["verdict"]) == (start["id"], "update", "state_change")


def test_another_scale_does_not_end_it(tracker: SeriesTracker) -> None:
    tracker.judge(judgement({1: 20.0}), 12, FIRST, NOBODY)
    assert tracker.judge(judgement({}, turns={1: Turn.PASSED}), 1, FIRST + 9, NOBODY) == []


def test_what_is_open_is_saved_renumbered_and_discarded(tracker: SeriesTracker) -> None:
    (start,) = tracker.judge(judgement({1: 20.0}), 1, FIRST, NOBODY)
    again = SeriesTracker(tracker.inputs, tracker.saved())
    again.renumber({1: 0})
    assert (list(again.rows()), again.ids_about({0}), again.ids_about({1})) == ([0], {start["id"]}, set())
    again.discard({start["id"]})
    assert list(again.open_novelties()) == []
