"""A log through a shard's state as the runtime feeds it: batch by batch, by one worker or by several."""

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

from connectors.kafka.partitioner import partition_of
from infra.contract.sharding import Mine
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


HALVES = (0, 1)


def half_of(key: str) -> int:
    """Which half of a shard that is divided into two has the machines of this key."""
    return partition_of(key.encode(), len(HALVES))


def mine(half: int) -> Mine:
    """What is this half's own."""
    return lambda key: half_of(key) == half


def halves(opener: Opener, parts: Parts) -> list[Parts]:
    """The states of the two shards that one is divided into."""
    found = [(half, opener(parts)) for half in HALVES]
    for half, state in found:
        state.retain(mine(half))
    return [state.dump() for _, state in found]


def data(outputs: list[Output]) -> list[Any]:
    """What is written, but for watermarks: how many there are depends on the batches."""
    return [output for output in outputs if output.key is not None]
