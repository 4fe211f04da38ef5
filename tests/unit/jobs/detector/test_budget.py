import numpy as np
import pytest

from jobs.detector.budget import MOST_ABOVE, MOST_BELOW, STEP, AlarmBudget
from jobs.detector.population.series import KnownSeries
from jobs.detector.saved_state import NOTHING, joined
from jobs.detector.settings import DetectorSettings

SETTINGS = DetectorSettings()  # five a day
DAY = 8640  # windows
NETWORK, CPU, LINES = 0, 1, 4  # rows

SERIES = [
    ("metric", "net{eth0}", "net"),
    ("metric", "cpu", "cpu"),
    ("metric", "net{eth1}", "net"),
    ("metric", "unnamed", None),
    ("log", "opened <num>", "log"),
    ("log", "closed <num>", "log"),
]


def series() -> KnownSeries:
    known = KnownSeries(NOTHING)
    kinds, names, metrics = zip(*SERIES, strict=True)
    known.rows_of(0, {"kind": kinds, "series": names, "name": metrics}, np.ones(len(SERIES), bool))
    known.add_new(1)
    return known


def budget(settings: DetectorSettings = SETTINGS) -> AlarmBudget:
    made = AlarmBudget(settings, series(), NOTHING)
    made.start_window(0)
    return made


def alert(row: int) -> dict[str, object]:
    kind, name, metric = SERIES[row]
    return {"verdict": "anomaly", "phase": "start", "kind": kind, "series": name} | ({"name": metric} if metric else {})


MACHINE = {"verdict": "anomaly", "phase": "start", "kind": "machine"}


def surcharges(made: AlarmBudget) -> list[float]:
    """By row, and of machines."""
    rows = np.arange(len(SERIES))
    of_series = made.thresholds_of_series(rows) - SETTINGS.threshold(len(SERIES))
    return [*of_series.tolist(), made.threshold_of_machines(3) - SETTINGS.threshold(3)]


def test_an_alert_raises_the_threshold_of_its_class_alone() -> None:
    made = budget()
    made.note([alert(NETWORK), alert(LINES), alert(LINES)])
    assert surcharges(made) == pytest.approx([STEP, 0.0, STEP, 0.0, 2 * STEP, 0.0, 0.0])
    made.note([MACHINE])
    assert surcharges(made)[-1] == pytest.approx(STEP)


def test_what_is_no_alert_costs_nothing() -> None:
    made = budget()
    made.note([{**alert(CPU), "phase": "end"}, {"verdict": "silence", "phase": "start", "kind": "machine"}])
    assert surcharges(made) == [0.0] * 7


def test_who_raises_what_is_allowed_stays_where_it_is() -> None:
    made = budget()
    for day in range(1, 41):
        made.note([MACHINE] * (2 + day % 2))  # half of five a day
        made.start_window(day * DAY)
    assert made.of_machines == pytest.approx(0.0, abs=2 * STEP)


def test_who_raises_none_comes_down_and_who_raises_many_goes_up_within_bounds() -> None:
    made = budget()
    for day in range(1, 400):
        made.note([alert(NETWORK)])
        made.start_window(day * DAY)
    found = surcharges(made)
    assert found[-1] == -MOST_BELOW
    assert found[NETWORK] == pytest.approx(MOST_ABOVE, abs=STEP)
    # Each of six series may raise a sixth of half the budget.
    assert found[CPU] == pytest.approx(max(-399 * STEP * 2.5 / 6, -MOST_BELOW))


def test_thresholds_depend_on_the_log_alone_and_not_on_which_windows_had_data() -> None:
    often, seldom = budget(), budget()
    for made, windows in ((often, range(1, DAY)), (seldom, range(DAY - 1, DAY))):
        for window in windows:
            made.start_window(window)
    assert surcharges(often) == pytest.approx(surcharges(seldom))


def test_a_shard_has_its_part_of_the_budget() -> None:
    quarter = budget(SETTINGS.model_copy(update={"shards": 4}))
    quarter.start_window(DAY)
    assert quarter.of_machines == pytest.approx(-STEP * 2.5 / 4)


def test_what_is_saved_goes_on() -> None:
    made, known = budget(), series()
    made.note([alert(LINES), MACHINE])
    again = AlarmBudget(SETTINGS, known, joined(made.saved()))
    made.start_window(DAY)
    again.start_window(DAY)
    assert surcharges(again) == surcharges(made)


def test_a_class_that_is_gone_is_forgotten_and_the_others_keep_theirs() -> None:
    made = budget()
    made.note([alert(NETWORK), alert(LINES), alert(LINES)])
    made.series.retain(np.array([2, 4]), np.array([0]))
    made.renumber()
    assert made.thresholds_of_series(np.arange(2)) - SETTINGS.threshold(2) == pytest.approx([STEP, 2 * STEP])
    assert len(made.of_classes) == 2
