import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from jobs.detector.model.blocks import Blocks

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
