import numpy as np
import pytest

from jobs.detector.model.protocol import Model, Phase, Turn
from jobs.detector.model.window_model import WindowModel
from jobs.detector.settings import DetectorSettings

SETTINGS = DetectorSettings()
THRESHOLD = 14.0
METRICS = 3


def learned(windows: int = 60, counts: int = 0) -> WindowModel:
    """Metrics around 100, and counts around 5."""
    model = WindowModel(SETTINGS)
    is_count = np.arange(METRICS + counts) >= METRICS
    model.add(is_count, np.zeros(len(is_count), np.int64), 0)
    rng = np.random.default_rng(2)
    for window in range(1, windows + 1):
        values = np.where(is_count, rng.poisson(5.0, len(is_count)), rng.normal(100.0, 1.0, len(is_count)))
        model.step(window, np.arange(len(is_count)), values.astype(float), np.ones(len(is_count)), THRESHOLD)
    return model


def turns(model: WindowModel, values: list[float], row: int = 0) -> list[Turn]:
    """What these windows do to one series."""
    rows = np.array([row])
    judged = [model.step(61 + at, rows, np.array([value]), np.ones(1), THRESHOLD) for at, value in enumerate(values)]
    return [Turn(int(judgement.turn[0])) for judgement in judged]


def test_it_is_a_model() -> None:
    model: Model = learned(counts=2)
    assert model.is_count().tolist() == [False] * METRICS + [True] * 2
    assert model.is_count(np.array([4, 0])).tolist() == [True, False]
    assert model.phase(np.arange(2)).tolist() == [Phase.NORMAL, Phase.NORMAL]
    assert model.figures()["seen"] == [60] * 5


def test_values_that_return_end_an_episode() -> None:
    assert turns(learned(), [130.0, 130.0, 100.0, 100.0]) == [Turn.STARTED, Turn.NONE, Turn.NONE, Turn.PASSED]


def test_values_that_stay_are_a_change_which_can_be_undone() -> None:
    found = turns(learned(), [130.0] * SETTINGS.settle_windows + [100.0])
    assert [turn for turn in found if turn] == [Turn.STARTED, Turn.CHANGED, Turn.UNDONE]


def test_a_change_that_stays_is_learned() -> None:
    noise = np.random.default_rng(5).normal(130.0, 1.0, 200).tolist()
    assert [turn for turn in turns(learned(), noise) if turn] == [Turn.STARTED, Turn.CHANGED, Turn.LEARNED]


def test_one_series_of_many_is_judged_as_if_it_were_alone() -> None:
    together, alone = learned(), learned()
    alone.retain(np.array([1]))
    values = [100.0, 130.0, 101.0]
    assert turns(together, values, row=1) == turns(alone, values)
    kept, only = together.dump(), alone.dump()
    assert {name: column[1] for name, column in kept.items()} == {name: column[0] for name, column in only.items()}


@pytest.mark.parametrize("past", [0, 50])
def test_a_new_template_is_a_surprise_where_its_machine_has_long_lived_without_it(past: int) -> None:
    model = WindowModel(SETTINGS)
    rows = model.add(np.ones(1, bool), np.array([past]), 100)
    judgement = model.step(100, rows, np.array([40.0]), np.ones(1), THRESHOLD)
    assert bool(judgement.alert[0]) is (past > 0)
