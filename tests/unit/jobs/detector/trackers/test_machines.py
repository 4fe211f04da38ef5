from collections.abc import Iterable

import numpy as np
import pytest

from jobs.detector.model.machines import COOLDOWN_WINDOWS
from jobs.detector.model.protocol import Judgement, Phase
from jobs.detector.rules import Rule
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.machines import MachineTracker, Whole
from tests.unit.jobs.detector.trackers.world import FIRST, inputs, judgement

THRESHOLD = 10.0
STRANGE = {0: 12.0, 1: 12.0, 2: 12.0}  # none of them alone would be alerted


@pytest.fixture
def tracker() -> MachineTracker:
    made, rng = MachineTracker(inputs(), Saved({}, {})), np.random.default_rng(1)
    for window in range(FIRST - 200, FIRST):
        made.model.strangeness(np.arange(6), 5.0 + 0.4 * rng.normal(size=6), window)
    return made


def judge(tracker: MachineTracker, judged: Judgement, window: int, busy: Iterable[int] = ()) -> list[dict[str, object]]:
    return tracker.judge(judged, THRESHOLD, window, busy)


def test_weak_surprises_at_once_are_a_novelty_of_the_machine(tracker: MachineTracker) -> None:
    (start,) = judge(tracker, judgement(STRANGE), FIRST)
    assert (start["machine"], start["kind"], start["verdict"], start["contributing"]) == (
        "vm-0",
        "machine",
        "anomaly",
        3,
    )
    assert sorted(tracker.rows()) == [0, 1, 2]
    assert tracker.in_anomaly() == {0}
    assert tracker.newest is not None
    assert tracker.newest.joint.machines.tolist() == [0, 1]


def test_what_deviates_most_is_named_first_whether_or_not_it_adds_to_the_score(tracker: MachineTracker) -> None:
    judged = judgement({0: 13.0, 1: 13.0})
    judged.observed[:3] = 8.0, 9.0, 10.0
    (start,) = judge(tracker, judged, FIRST)
    named = start["contributors"]
    assert isinstance(named, list)
    assert [one["series"] for one in named] == ["net", "disk", "cpu"]
    assert [one["share"] for one in named] == pytest.approx([0.0, 0.5, 0.5])
    assert start["contributing"] == 3
    assert sorted(tracker.rows()) == [0, 1]  # those it is made of say when it is over


def test_a_machine_with_another_alert_is_not_alerted(tracker: MachineTracker) -> None:
    assert judge(tracker, judgement(STRANGE), FIRST, busy=[0]) == []


def test_one_strange_series_is_no_novelty_of_its_machine(tracker: MachineTracker) -> None:
    assert judge(tracker, judgement({0: 13.0}), FIRST) == []


def test_it_ends_when_the_machine_is_calm(tracker: MachineTracker) -> None:
    (start,) = judge(tracker, judgement(STRANGE), FIRST)
    assert judge(tracker, judgement(STRANGE), FIRST + 1) == []
    (end,) = judge(tracker, judgement({}), FIRST + 2)
    assert (end["id"], end["phase"]) == (start["id"], "end")
    assert end["text"] == "vm-0 is no longer strange as a whole, after 20 s: net, disk, cpu together"
    assert tracker.in_anomaly() == set()


def test_what_an_operator_has_called_normal_is_none(tracker: MachineTracker) -> None:
    tracker.inputs.overrides.call_calm(0, 30.0)
    assert judge(tracker, judgement(STRANGE), FIRST) == []


def test_series_that_a_rule_suppresses_do_not_count(tracker: MachineTracker) -> None:
    tracker.inputs.overrides.rules["r"] = Rule(series="[cd]*")
    assert judge(tracker, judgement(STRANGE), FIRST) == []


def test_a_new_surprise_of_a_changed_machine_makes_its_state_final(tracker: MachineTracker) -> None:
    (start,) = judge(tracker, judgement(STRANGE), FIRST)
    tracker.open[0] = Whole(tracker.open[0].rows, {**start, "verdict": "state_change"})
    tracker.inputs.model.windows.state.phase[:3] = Phase.CHANGED  # type: ignore[attr-defined]
    end, again = tracker.judge(judgement(STRANGE), 5.0, FIRST + COOLDOWN_WINDOWS + 1, ())
    assert (end["id"], end["phase"], end["verdict"]) == (start["id"], "end", "state_change")
    assert end["text"] == "vm-0: the new state is the normal one now"
    assert (again["phase"], again["verdict"], again["id"] != start["id"]) == ("start", "anomaly", True)


def test_what_is_open_is_saved_renumbered_and_discarded(tracker: MachineTracker) -> None:
    (start,) = judge(tracker, judgement(STRANGE), FIRST)
    again = MachineTracker(tracker.inputs, tracker.saved())
    again.renumber({0: 5, 1: 4, 2: 3})
    assert sorted(again.rows()) == [3, 4, 5]
    assert again.ids_about({5}) == {start["id"]}
    again.discard({str(start["id"])})
    assert list(again.open_novelties()) == []
