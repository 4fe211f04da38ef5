import numpy as np
import pytest

from ops.quality.smd import Machine, ours
from ops.quality.smd_scores import average_precision, found


def test_average_precision_is_the_area_of_the_steps() -> None:
    labels = np.array([True, False, True, False])
    assert average_precision(labels, np.array([4.0, 3.0, 2.0, 1.0])) == pytest.approx(0.5 * 1 + 0.5 * 2 / 3)


def test_equal_scores_are_one_step() -> None:
    assert average_precision(np.array([True, False]), np.array([1.0, 1.0])) == pytest.approx(0.5)


def simulated(name: str, seed: int, shift: float) -> Machine:
    """Three metrics; in the test's minutes 10 to 13 all of them are off by so many deviations."""
    values = np.random.default_rng(seed).normal(50.0, 1.0, (90, 3))
    values[80:84] += shift
    return Machine(name, values[:70], values[70:], np.isin(np.arange(20), range(10, 14)))


def test_machines_are_judged_by_their_own_series() -> None:
    strange, usual = simulated("a", 1, 20.0), simulated("b", 2, 0.0)
    together, alone = ours([strange, usual]), ours([usual])
    assert together.scores["b"] == pytest.approx(alone.scores["b"])
    assert np.flatnonzero(together.alerts["a"]).tolist() == [10]
    assert together.scores["a"].argmax() in range(10, 14)
    assert not together.alerts["b"].any()


def test_the_series_of_each_machine_are_ranked_as_its_novelties_rank_them() -> None:
    values = np.random.default_rng(1).normal(50.0, 1.0, (90, 4))
    values[80:84, 2] += 20.0
    usual = np.random.default_rng(2).normal(50.0, 1.0, (85, 3))
    usual[75, 1] = np.nan
    labels = np.isin(np.arange(20), range(10, 14))
    machines = [Machine("b", usual[:70], usual[70:], labels[:15]), Machine("a", values[:70], values[70:], labels)]
    ranks = ours(machines).ranks
    assert (ranks["a"].shape, ranks["b"].shape) == ((20, 4), (15, 3))
    assert ranks["a"][10:14].argmax(axis=1).tolist() == [2, 2, 2, 2]
    assert ranks["b"][5, 1] == 0


def test_events_and_false_alarms_are_counted_by_span() -> None:
    labels = np.zeros(1440, bool)
    labels[100:110] = labels[500:510] = True
    hits = np.zeros(1440, bool)
    hits[[105, 700, 702, 900]] = True
    machine = Machine("m", np.zeros((0, 1)), np.zeros((1440, 1)), labels)
    assert found([machine], {"m": hits}, 60.0) == {"events": 2, "events_found": 1, "false_alarms_per_day": 2.0}
