from dataclasses import replace

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
    (started,) = tracker.judge(judgement({}), 4, OLD, NOTHING_OPEN)
    start = started.novelty
    assert started.rows.tolist() == [4, 5]
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


class Templates:
    """A tracker whose machine vm-0 has a log template, row 6, that begins in a window before it is old."""

    def __init__(self) -> None:
        world = inputs()
        statistics = {"kind": ["log"], "series": ["disk <*> failed"]}
        world.series.rows_of(0, statistics, np.ones(1, bool))
        world.series.add_new(OLD)
        world.model.add(np.ones(1, bool), np.array([1000]), OLD)
        self.tracker = NewEntityTracker(world, NOTHING)
        for machine in range(2):
            self.tracker.add_machine(machine, FIRST)

    def judge(self, lines: float, known: int, window: int) -> list[dict[str, object]]:
        """The novelties of a window in which the template has so many lines; from row `known` on series are new."""
        all_rows = judgement({})
        observed = np.append(all_rows.observed, lines)
        found = replace(all_rows, rows=np.arange(7), observed=observed)
        return [started.novelty for started in self.tracker.judge(found, known, window, NOTHING_OPEN)]


def test_a_template_that_begins_at_the_end_of_a_window_is_new_in_the_next() -> None:
    templates = Templates()
    assert templates.judge(1.0, 6, OLD) == []
    templates.tracker = NewEntityTracker(templates.tracker.inputs, templates.tracker.saved())
    (start,) = templates.judge(9.0, 7, OLD + 1)
    assert (start["verdict"], start["series"], start["observed"]) == ("new_entity", "disk <*> failed", 10.0)
    assert templates.judge(9.0, 7, OLD + 2) == []


@pytest.mark.parametrize("later", [2, 3])
def test_a_template_is_new_for_two_windows_and_no_longer(later: int) -> None:
    templates = Templates()
    assert templates.judge(1.0, 6, OLD) == []
    if later == 3:
        assert templates.judge(0.0, 7, OLD + 1) == []
    assert templates.judge(9.0, 7, OLD + later) == []


def test_a_template_whose_machine_is_gone_is_forgotten() -> None:
    templates = Templates()
    assert templates.judge(1.0, 6, OLD) == []
    templates.tracker.renumber({row: row for row in range(6)})
    assert templates.judge(9.0, 7, OLD + 1) == []


def test_what_is_open_is_saved_and_discarded(tracker: NewEntityTracker) -> None:
    (start,) = add(tracker, "vm-9", OLD)
    again = NewEntityTracker(tracker.inputs, tracker.saved())
    assert list(again.open_novelties()) == [start]
    assert np.array_equal(again.news, [0, 0, 0])
    again.discard({str(start["id"])})
    assert again.end_known(OLD + 100) == []
