import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.detector.model_scales import LENIENCE, QUIET_WINDOWS, SCALES, Blocks, Quiet, Scales
from jobs.detector.settings import DetectorSettings

THRESHOLD = 14.0
ONE = np.ones(1)
ROW = np.zeros(1, np.int64)


def blocks(ratio: int) -> Blocks:
    made = Blocks(ratio, {"block": ROW, "windows": ROW, "total": np.zeros(1)})
    made.columns = {name: column.copy() for name, column in made.columns.items()}
    return made


@given(st.dictionaries(st.integers(1, 60), st.floats(-100, 100), min_size=1))
def test_a_block_is_the_mean_of_its_windows_and_ends_when_a_later_one_comes(values: dict[int, float]) -> None:
    made, closed = blocks(5), {}
    for window, value in sorted(values.items()):
        ended = made.add(ROW, np.array([window]), np.array([value]))
        for at in range(len(ended.at)):
            closed[int(ended.block[at])] = (float(ended.value[at]), float(ended.windows[at]))
    by_block: dict[int, list[float]] = {}
    for window, value in sorted(values.items()):
        by_block.setdefault((window + 4) // 5, []).append(value)
    del by_block[max(by_block)]
    assert list(closed) == list(by_block)
    for block, (mean, windows) in closed.items():
        assert (mean, windows) == (sum(by_block[block]) / len(by_block[block]), len(by_block[block]))


def told(values: np.ndarray) -> list[tuple[int, int]]:
    """(window, scale) of what is told of one series."""
    scales = Scales(DetectorSettings())
    scales.add(np.zeros(1, bool), ROW, 0)
    found = []
    for window, value in enumerate(values.tolist(), start=1):
        judgements = scales.step(window, ROW, np.array([value]), ONE, THRESHOLD)
        found += [(window, SCALES[at]) for at, judgement in enumerate(judgements) if judgement.told[0]]
    return found


def noise(windows: int) -> np.ndarray:
    return np.random.default_rng(3).normal(100.0, 1.0, windows)


def test_all_scales_together_spend_the_budget_once() -> None:
    assert sum(np.exp(LENIENCE) / SCALES) == pytest.approx(1.0)


def test_noise_tells_nothing_on_any_scale() -> None:
    assert told(noise(4000)) == []


def test_what_is_too_small_for_a_window_is_told_by_the_mean_of_a_block() -> None:
    values = noise(1000)
    values[600:] += 3.0
    assert [scale for _, scale in told(values)] == [12]
    assert 612 < told(values)[0][0] < 640


def test_a_change_that_a_window_tells_is_not_told_again_by_its_blocks() -> None:
    values = noise(1500)
    values[600:] += 40.0
    assert told(values) == [(601, 1)]


def test_after_a_surprise_only_a_louder_one_of_single_windows_is_told() -> None:
    quiet = Quiet.of(1)
    yes = np.ones(1, bool)

    def tells(scale: int, score: float, window: int) -> bool:
        return bool(quiet.pass_on(scale, ROW, np.array([score]), yes, np.array([window]))[0])

    assert tells(0, 20.0, 1)
    assert not tells(0, 19.0, 2)
    assert not tells(1, 50.0, 3)
    assert tells(0, 21.0, 4)
    assert tells(1, 15.0, 4 + QUIET_WINDOWS + 1)


@pytest.mark.parametrize("begins", [20, 40])
def test_a_burst_that_begins_within_a_window_is_told_by_the_next(begins: int) -> None:
    """The first is a surprise that isn't worth telling; the second is hardly more of one."""
    scales = Scales(DetectorSettings())
    scales.add(np.ones(1, bool), ROW, 0)
    counts = [*np.random.default_rng(1).poisson(4.5, 12), begins, 190, 190]
    judged = [scales.step(at, ROW, ONE * count, ONE * count, 15.0)[0] for at, count in enumerate(counts, start=1)]
    assert 6.0 < judged[12].score[0] < 15.0 < judged[13].score[0] < 3 * judged[12].score[0]
    assert [at for at, judgement in enumerate(judged) if judgement.told[0]] == [13]


def test_the_state_goes_on_from_its_dump() -> None:
    values = noise(300)
    whole, halves = Scales(DetectorSettings()), Scales(DetectorSettings())
    for scales in (whole, halves):
        scales.add(np.zeros(1, bool), ROW, 0)
    for window, value in enumerate(values.tolist(), start=1):
        if window == 150:
            halves = Scales(DetectorSettings(), halves.dump())
        for scales in (whole, halves):
            scales.step(window, ROW, np.array([value]), ONE, THRESHOLD)
    assert {name: column.tobytes() for name, column in whole.dump().items()} == {
        name: column.tobytes() for name, column in halves.dump().items()
    }
