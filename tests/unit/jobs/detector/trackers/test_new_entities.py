import numpy as np
import pytest

from jobs.detector.rules import Rule
from jobs.detector.saved_state import NOTHING
from jobs.detector.trackers.new_entities import NewEntityTracker
from tests.unit.jobs.detector.trackers.world import FIRST, inputs, judgement

OLD = FIRST + 1000  # window in which all machines have lived for long
NOTHING_OPEN: set[int] = set()


@pytest.fixture
def tracker() -> NewEntityTracker:
    made = NewEntityTracker(inputs(), NOTHING)
    for machine in range(2):
        assert made.add_machine(machine, FIRST) == []
    return made


def add(tracker: NewEntityTracker, name: str, window: int) -> list[dict[str, object]]:
    return tracker.add_machine(tracker.inputs.machines.add(name, window, None), window)


def test_a_machine_that_comes_later_is_new_until_it_is_known(tracker: NewEntityTracker) -> None:
    (start,) = add(tracker, "vm-9", OLD)
    assert (start["machine"], start["verdict"], start["kind"]) == ("vm-9", "new_entity", "machine")
    assert tracker.end_known(OLD + 5) == []
    (end,) = tracker.end_known(OLD + 6)
    assert (end["id"], end["phase"]) == (start["id"], "end")
    assert list(tracker.open_novelties()) == []


def test_no_machine_is_new_while_the_shard_warms_up(tracker: NewEntityTracker) -> None:
    assert add(tracker, "vm-9", FIRST + 5) == []


def test_a_rule_suppresses_it(tracker: NewEntityTracker) -> None:
    tracker.inputs.overrides.rules["r"] = Rule(machine="vm-9")
    assert add(tracker, "vm-9", OLD) == []


def test_new_series_of_a_machine_are_one_novelty_where_they_are_rare(tracker: NewEntityTracker) -> None:
    (start,) = tracker.judge(judgement({}), 4, OLD, NOTHING_OPEN)
    assert (start["machine"], start["series"], start["contributing"]) == ("vm-1", "disk", 2)
    assert start["text"] == "metric disk (and 1 more) was never seen before on vm-1 (at s1)"
    assert tracker.news.tolist() == [0, 1]


def test_a_machine_that_often_has_new_series_is_none(tracker: NewEntityTracker) -> None:
    tracker.news[1] = 200
    assert tracker.judge(judgement({}), 4, OLD, NOTHING_OPEN) == []
    assert tracker.news.tolist() == [0, 201]


@pytest.mark.parametrize(("window", "open_rows"), [(FIRST + 5, set()), (OLD, {5})])
def test_young_machines_and_series_with_another_novelty_have_none(
    tracker: NewEntityTracker, window: int, open_rows: set[int]
) -> None:
    assert tracker.judge(judgement({}), 4, window, open_rows) == []


def test_what_is_open_is_saved_and_discarded(tracker: NewEntityTracker) -> None:
    (start,) = add(tracker, "vm-9", OLD)
    again = NewEntityTracker(tracker.inputs, tracker.saved())
    assert list(again.open_novelties()) == [start]
    assert np.array_equal(again.news, [0, 0, 0])
    again.discard({str(start["id"])})
    assert again.end_known(OLD + 100) == []
