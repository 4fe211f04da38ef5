from math import exp

import numpy as np
import pytest

from jobs.detector.model.arrays import Bools
from jobs.detector.model.machines import (
    BYTES_PER_MACHINE,
    CALM,
    COOLDOWN_WINDOWS,
    ONSET,
    TEMPER,
    Joint,
    MachineModel,
)

THRESHOLD = 10.0
NOBODY = np.zeros(0, np.int64)
LOUD = 50.0  # the strangeness of what is judged by its score


def machines(*series: int) -> MachineModel:
    """Machines of so many series each."""
    made = MachineModel()
    made.grow(len(series))
    made.add(np.repeat(np.arange(len(series)), series))
    return made


def judge(scores: list[float], strangeness: float = LOUD, made: MachineModel | None = None) -> Joint:
    """One window of one machine."""
    made = made or machines(len(scores))
    return made.judge(np.zeros(len(scores), np.int64), np.full(len(scores), strangeness), np.array(scores))


def test_what_several_series_say_a_little_adds_up() -> None:
    quiet = [0.0] * 27
    assert judge([13.0, 13.0, 11.0, 8.0, *quiet]).now[0] > 14.0
    assert judge([13.0, *[0.0] * 30]).now[0] < 9.0


def test_the_evidence_is_chernoffs_bound_of_a_sum_of_excesses() -> None:
    excess, expected = 2 * (9.0 - ONSET), 20 * exp(-ONSET)
    found = judge([9.0, 9.0, *[ONSET] * 18]).now[0]
    assert found == pytest.approx((np.sqrt(excess) - np.sqrt(expected)) ** 2)
    rng = np.random.default_rng(1)
    sums = np.maximum(rng.exponential(size=(200_000, 20)) - ONSET, 0).sum(axis=1)
    assert np.mean(sums >= excess) < exp(-found)


def test_a_score_counts_only_as_far_as_others_do_not_explain_it() -> None:
    assert judge([30.0] * 8, strangeness=2.0).score[0] == 0.0
    assert judge([30.0] * 8, strangeness=5.0).now[0] == judge([5.0] * 8).now[0]


def test_what_lasts_adds_up_without_a_score() -> None:
    made = machines(8)
    found = [judge([0.0] * 8, 12.0, made).score[0] for _ in range(20)]
    assert found == sorted(found)
    assert found[0] == pytest.approx(8 * (12.0 - ONSET) / 5.0 / TEMPER)
    assert found[-1] == pytest.approx(8 * (12.0 - ONSET) / TEMPER, rel=0.05)


def test_weights_are_of_what_the_score_is_made_of() -> None:
    assert judge([13.0, 7.0, 0.0]).weight.tolist() == [9.0, 3.0, 0.0]
    assert judge([0.0] * 3, 12.0).weight.tolist() == [12.0 - ONSET] * 3


def test_a_machine_of_one_series_has_nothing_to_add() -> None:
    made = machines(1, 2)
    joint = made.judge(np.array([0, 1, 1]), np.full(3, LOUD), np.full(3, 19.0))
    assert joint.score[0] == 0.0
    assert joint.score[1] > 19.0


def test_machines_that_send_nothing_keep_what_lasts() -> None:
    made = machines(2, 2)
    made.judge(np.array([0, 0, 1, 1]), np.full(4, 20.0), np.zeros(4))
    joint = made.judge(np.zeros(2, np.int64), np.zeros(2), np.zeros(2))
    assert joint.machines.tolist() == [0]
    assert made.dump()["lasting"][1] > made.dump()["lasting"][0]


def test_a_common_move_is_less_strange_than_one_against_the_others() -> None:
    rng, made = np.random.default_rng(4), machines(6)
    rows = np.arange(6)

    def strangeness(common: float, own: np.ndarray, window: int) -> np.ndarray:
        return made.strangeness(rows, 100.0 + 5.0 * common + own, window).beside

    for window in range(1, 1500):
        strangeness(rng.normal(), 0.3 * rng.normal(size=6), window)
    together = strangeness(4.0, np.zeros(6), 1500)
    for window in range(1501, 1520):
        strangeness(rng.normal(), 0.3 * rng.normal(size=6), window)
    against = strangeness(0.0, np.array([-25.0, 0, 0, 0, 0, 0]), 1520)
    assert np.maximum(together - ONSET, 0).sum() < 8.0
    assert np.maximum(against - ONSET, 0).sum() > 10.0
    assert against.argmax() == 0


def alerts_at(scores: list[float], busy: range = range(0)) -> list[int]:
    """The windows in which a machine is alerted whose 8 series have these scores; it has another alert in `busy`."""
    made, windows = machines(8), []
    for window, score in enumerate(scores, start=1):
        joint = judge([score] * 8, made=made, strangeness=score)
        some = np.zeros(1, np.int64) if window in busy else NOBODY
        if _alerts(made, joint, some, window).any():
            windows.append(window)
    return windows


def _alerts(made: MachineModel, joint: Joint, busy: np.ndarray, window: int) -> Bools:
    return made.alerts(joint, busy, THRESHOLD, window)


def test_a_machine_is_alerted_once_and_then_only_what_is_louder() -> None:
    assert alerts_at([6.0] * 40) == [1]
    assert alerts_at([6.0] * 5 + [9.0]) == [1, 6]


def test_what_comes_after_the_cooldown_is_alerted() -> None:
    assert alerts_at([6.0, *[0.0] * (COOLDOWN_WINDOWS - 2), 6.0]) == [1]
    assert alerts_at([6.0, *[0.0] * (COOLDOWN_WINDOWS + 1), 6.0]) == [1, COOLDOWN_WINDOWS + 3]


def test_what_one_of_its_series_alerts_is_not_alerted_again() -> None:
    assert alerts_at([6.0] * 30, busy=range(1, 10)) == []
    assert alerts_at([6.0] * 10 + [9.0] * 3, busy=range(1, 10)) == [11]


def test_a_calm_machine_is_below_the_level_that_ends_an_anomaly() -> None:
    assert judge([ONSET] * 30).now[0] < CALM


def test_the_state_is_constant_and_says_how_large_it_is() -> None:
    made = machines(*[31] * 7)
    rng, owner = np.random.default_rng(1), np.repeat(np.arange(7), 31)
    for window in range(1, 60):
        strange = made.strangeness(np.arange(217), rng.normal(size=217), window)
        made.judge(owner, strange.beside, np.zeros(217))
    state = made.dump()
    size = sum(column.nbytes for column in state.values())
    assert size == sum(column.nbytes for column in machines(*[31] * 7).dump().values())
    assert size < 7 * BYTES_PER_MACHINE + 217 * 220
    again = MachineModel({name: column.copy() for name, column in state.items()})
    x = rng.normal(size=217)
    both = (model.strangeness(np.arange(217), x, 60) for model in (again, made))
    for one, other in zip(*both, strict=True):
        np.testing.assert_array_equal(one, other)


def test_series_and_machines_that_are_left_keep_what_is_known_of_them() -> None:
    made, alone = machines(3, 5), machines(5)
    rng = np.random.default_rng(6)
    values = rng.normal(size=(100, 8))
    for window, x in enumerate(values, start=1):
        made.judge(np.repeat([0, 1], [3, 5]), made.strangeness(np.arange(8), x, window).beside, np.zeros(8))
        alone.judge(np.zeros(5, np.int64), alone.strangeness(np.arange(5), x[3:], window).beside, np.zeros(5))
    made.retain(np.arange(3, 8), np.array([1]))
    both = (made.dump(), alone.dump())
    assert both[0].keys() == both[1].keys()
    for name, column in both[0].items():
        np.testing.assert_array_equal(column, both[1][name], name)
