import numpy as np
import pytest

from jobs.detector.rules import Rule
from jobs.detector.saved_state import NOTHING
from jobs.detector.trackers.silence import SilenceTracker
from tests.unit.jobs.detector.trackers.world import FIRST, inputs

LAST = FIRST + 99  # window in which both machines were seen, as in all before


@pytest.fixture
def tracker() -> SilenceTracker:
    made = SilenceTracker(inputs(), NOTHING)
    for window in range(FIRST, LAST + 1):
        made.machines.see(window, np.arange(2), 3)
    return made


def silent(tracker: SilenceTracker, windows: int) -> list[dict[str, object]]:
    """vm-1 goes on, vm-0 doesn't."""
    found = []
    for window in range(LAST + 1, LAST + 1 + windows):
        tracker.machines.see(window, np.array([1]), 3)
        found += tracker.judge(window)
    return found


def test_a_regular_machine_is_missed_after_some_windows(tracker: SilenceTracker) -> None:
    assert silent(tracker, 2) == []
    (start,) = silent(tracker, 9)
    assert (start["machine"], start["verdict"], start["observed"], start["expected_high"]) == (
        "vm-0",
        "silence",
        30.0,
        20.0,
    )
    assert start["since_unix_nano"] == tracker.settings.end_of(LAST + 1)
    assert tracker.is_silent(0)


def test_it_ends_when_the_machine_is_seen_again(tracker: SilenceTracker) -> None:
    (start,) = silent(tracker, 5)
    tracker.inputs.overrides.excused.add(0)
    (end,) = tracker.end(LAST + 6, np.array([0, 1]))
    assert (end["id"], end["phase"], end["text"]) == (start["id"], "end", "vm-0 speaks again")
    assert tracker.inputs.overrides.excused == set()
    assert tracker.end(LAST + 7, np.array([0, 1])) == []


def test_a_machine_that_often_misses_windows_is_missed_later(tracker: SilenceTracker) -> None:
    tracker.machines.missed[0] = 60
    assert [start["time_unix_nano"] for start in silent(tracker, 30)] == [tracker.settings.end_of(LAST + 5)]


def test_gaps_that_an_operator_called_normal_and_rules_are_no_novelty(tracker: SilenceTracker) -> None:
    tracker.inputs.overrides.call_gap_normal(0, 4)
    assert silent(tracker, 4) == []
    tracker.inputs.overrides.rules["r"] = Rule(machine="vm-0")
    assert silent(tracker, 20) == []


def test_what_is_open_is_saved_and_discarded(tracker: SilenceTracker) -> None:
    (start,) = silent(tracker, 5)
    again = SilenceTracker(tracker.inputs, tracker.saved())
    assert list(again.open_novelties()) == [start]
    again.discard({str(start["id"])})
    assert not again.is_silent(0)
