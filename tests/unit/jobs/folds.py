"""A log through a shard's state as the runtime feeds it: batch by batch, by one worker or by several."""

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input, Opener, Output


def fed(opener: Opener, batch: Input, cuts: dict[int, bool] | None = None) -> tuple[Parts, list[Output]]:
    """(state, outputs) of a log, cut before these places; where the value is true, another worker goes on."""
    state, outputs = opener(None), []
    chosen = cuts or {}
    for begin, end in pairwise([0, *sorted(chosen), len(batch.offsets)]):
        if chosen.get(begin):
            state = opener(state.dump())
        outputs += state.feed(batch.part(begin, end))
        state.dump()
    return state.dump(), outputs


def cuts_of(length: int) -> st.SearchStrategy[dict[int, bool]]:
    """Where a log of so many records is cut, and whether another worker goes on there."""
    return st.dictionaries(st.integers(0, length), st.booleans(), max_size=8)


def data(outputs: list[Output]) -> list[Any]:
    """What is written, but for watermarks: how many there are depends on the batches."""
    return [output for output in outputs if output.key is not None]
