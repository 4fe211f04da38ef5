import numpy as np
import pytest

from jobs.detector.population.series import Definition, KnownSeries
from jobs.detector.saved_state import NOTHING, Saved

STATISTICS = {"kind": ["metric", "log", "metric"], "series": ["cpu", "opened <*>", "disk"], "unit": ["1", None, "By"]}
ALL = np.ones(3, bool)


@pytest.fixture
def series() -> KnownSeries:
    """Three of machine 0, of which machine 1 has the last two."""
    made = KnownSeries(NOTHING)
    made.rows_of(0, STATISTICS, ALL)
    made.rows_of(1, STATISTICS, np.array([False, True, True]))
    made.add_new(7)
    return made


def test_each_series_of_each_machine_has_a_row_and_machines_share_definitions(series: KnownSeries) -> None:
    assert series.rows_of(0, STATISTICS, ALL).tolist() == [0, 1, 2]
    assert series.rows_of(1, STATISTICS, np.array([False, True, True])).tolist() == [3, 4]
    assert series.machine.tolist() == [0, 0, 0, 1, 1]
    assert series.definition.tolist() == [0, 1, 2, 1, 2]
    assert series.last.tolist() == [7] * 5
    assert series.describe(4) == Definition("metric", "disk", None, "By")
    assert [series.row(1, "metric", name) for name in ("disk", "cpu", "none")] == [4, None, None]


def test_only_what_is_new_is_added(series: KnownSeries) -> None:
    assert series.add_new(8) == slice(5, 5)
    assert series.rows_of(1, STATISTICS, ALL).tolist() == [5, 3, 4]
    assert series.add_new(8) == slice(5, 6)
    assert series.last.tolist() == [7] * 5 + [8]


def test_globs_choose_series(series: KnownSeries) -> None:
    assert series.matching(np.array([True, True]), "d*").tolist() == [2, 4]
    assert series.matching(np.array([False, True]), "*").tolist() == [3, 4]


def test_series_that_are_kept_are_renumbered_and_unused_definitions_go(series: KnownSeries) -> None:
    series.retain(np.array([2, 4]), np.arange(3))
    assert [one.series for one in series.definitions] == ["disk"]
    assert [series.row(machine, "metric", "disk") for machine in (0, 1)] == [0, 1]
    assert series.row(0, "metric", "cpu") is None
    assert series.rows_of(0, STATISTICS, ALL).tolist() == [2, 3, 0]


def test_a_share_that_succeeds_is_judged_by_what_is_missing_of_it_and_no_other_series() -> None:
    series = KnownSeries(NOTHING)
    statistics = {
        "kind": ["metric", "log", "metric"],
        "series": ["availability", "availability 99 %", "cpu"],
        "unit": ["%", "%", "%"],
    }
    rows = series.rows_of(0, statistics, ALL)
    series.add_new(7)
    values = np.array([97.1, 3.0, 40.0])
    assert series.complement(rows, values).tolist() == [100 - 97.1, 3.0, 40.0]
    assert series.complement(rows, series.complement(rows, values)).tolist() == values.tolist()
    again = KnownSeries(series.saved())
    assert again.complement(rows[:1], values[:1]).tolist() == [100 - 97.1]


def test_one_that_an_earlier_version_judged_by_its_level_still_is() -> None:
    """Its state is about levels: as a change of its state it would be alerted."""
    saved = {"definitions": [["metric", "availability", None, "%"]]}
    series = KnownSeries(Saved(saved, {name: np.zeros(1, np.int64) for name in ("machine", "definition", "heard")}))
    assert series.complement(np.array([0]), np.array([97.1])).tolist() == [97.1]


def test_they_go_on_from_what_was_saved(series: KnownSeries) -> None:
    again = KnownSeries(series.saved())
    assert again.definitions == series.definitions
    assert again.rows_of(1, STATISTICS, np.array([False, True, True])).tolist() == [3, 4]
