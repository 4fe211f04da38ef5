"""Packed state: all rows of one Kafka partition go, in offset order, through one Python call a batch.

A partition is a shard: it holds whole machines, and the watermarks in it say how far event time has come. A fold
therefore needs nothing but its own partition's log, in the order of the log. Its result can't depend on batch sizes, on
the number of cores or on how fast other partitions are read. One call for many series is also what makes Python
affordable: Spark's cost is per group, not per row.
"""

import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import orjson
import pandas as pd
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_placement import salted
from jobs.runtime.state_cache import Nearby

PARTS = "parts"  # the state variable that holds a shard's
PIECE_BYTES = 32 * 2**20  # of records, which take more while they are folded
KEY = ("shard", "salt")  # of a shard's state
_QUERY = "sql.streaming.queryId"  # the property by which a task knows its query

_OUTPUT = (
    "topic string, shard int, key string, value binary, time_unix_nano long,"
    " headers array<struct<key:string,value:binary>>"
)


@dataclass(frozen=True)
class Input:
    """The new records of a shard in the order of the log."""

    topic: str
    shard: int
    offsets: Sequence[int]
    values: Sequence[bytes]
    partitions: Sequence[int] = ()  # of each record, where several are folded together

    def part(self, begin: int, end: int) -> "Input":
        """Its records from `begin` to before `end`."""
        cut = slice(begin, end)
        return replace(self, offsets=self.offsets[cut], values=self.values[cut], partitions=self.partitions[cut])


@dataclass(frozen=True)
class Output:
    """A record to write: its key, JSON, event time, headers, and its topic if that isn't the fold's usual one."""

    key: str | None
    value: bytes
    time_unix_nano: int
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str | None = None

    @classmethod
    def of_watermark(cls, time_unix_nano: int) -> "Output":
        """That what follows in this shard is no older."""
        return cls(None, orjson.dumps({"watermark_unix_nano": time_unix_nano}), time_unix_nano)


# (state so far or None, the new records) -> (state, what to write). Must be the same however the log is cut.
Fold = Callable[[Parts | None, Input], tuple[Parts, list[Output]]]


def fold_shards(frame: DataFrame, fold: Fold) -> DataFrame:
    """Fold a stream of Kafka rows shard by shard; columns topic, shard, key, value, time_unix_nano, headers."""
    return _folded(frame, fold, F.col("partition"))


def fold_together(frame: DataFrame, fold: Fold) -> DataFrame:
    """The same of all partitions at once, for a topic of few records: only the order within each is the log's."""
    return _folded(frame, fold, F.lit(0))


def _folded(frame: DataFrame, fold: Fold, shard: Column) -> DataFrame:
    return (
        frame.select(shard.alias("shard"), salted(shard), "topic", "partition", "offset", "value")
        .groupBy(*KEY)
        .transformWithStateInPandas(_Shards(fold), _OUTPUT, "append", "none")
    )


class _Shards(StatefulProcessor):
    """Folds each shard's records and keeps its state by part: only parts that changed go to Spark.

    All of them lie on this machine, for whichever worker folds the shard next. `version` tells whether another machine
    has folded it since, or what was done here was not kept.
    """

    def __init__(self, fold: Fold) -> None:
        self.fold = fold

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a task's shards."""
        self.version = handle.getValueState("version", "version string")
        self.parts = handle.getMapState(PARTS, "name string", "part binary")

    def handleInputRows(self, key: Any, rows: Any, timerValues: object) -> Iterator[pd.DataFrame]:
        """All new records of a shard."""
        shard, records = int(key[0]), pd.concat(list(rows)).sort_values(["partition", "offset"], kind="stable")
        lists = (records[name].tolist() for name in ("offset", "value", "partition"))
        batch = Input(records["topic"].iloc[0], shard, *lists)
        task, known = TaskContext.get(), self.version.get()
        assert task
        nearby = Nearby.of(task.getLocalProperty(_QUERY), batch.topic, shard)
        version = known[0] if known else ""
        before = self._before(nearby, version)
        with _no_search_for_cycles():
            folded, outputs = in_pieces(self.fold, before, batch)
        after = self._keep(before or {}, folded)
        version = _following(version, batch)
        self.version.update((version,))
        nearby.put(version, after)
        if outputs:
            yield _to_frame(shard, outputs)

    def _before(self, nearby: Nearby, version: str) -> Parts | None:
        if not version:
            return None
        found = nearby.get(version)
        return {name: bytes(part) for (name,), (part,) in self.parts.iterator()} if found is None else found

    def _keep(self, before: Parts, after: Parts) -> Parts:
        """`after`, with what is equal as the same objects."""
        same = {name for name, part in after.items() if before.get(name) == part}
        for name in after.keys() - same:
            self.parts.updateValue((name,), (after[name],))
        for name in before.keys() - after.keys():
            self.parts.removeKey((name,))
        return {name: before[name] if name in same else part for name, part in after.items()}

    def close(self) -> None:
        """Nothing is open."""


def in_pieces(
    fold: Fold, state: Parts | None, batch: Input, piece_bytes: int = PIECE_BYTES
) -> tuple[Parts, list[Output]]:
    """What `fold` makes of a batch, of which it gets about so many bytes at once.

    Spark bounds a batch by its records, but of a backlog each record of `events` has a thousand data points.
    """
    piece = np.cumsum([0, *map(len, batch.values)])[:-1] // piece_bytes
    cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(piece)]
    outputs: list[Output] = []
    for begin, end in pairwise(cuts):
        state, found = fold(state, batch.part(begin, end))
        outputs += found
    assert state is not None
    return state, outputs


def _following(version: str, batch: Input) -> str:
    """The state's version after a batch: what was folded into it, and in which steps."""
    last = dict(zip(batch.partitions, batch.offsets, strict=True))
    return blake2b(f"{version} {batch.topic} {sorted(last.items())}".encode(), digest_size=16).hexdigest()


@contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """A fold makes millions of small objects and no cycles; to look for some takes a sixth of the statistics' time."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def _to_frame(shard: int, outputs: list[Output]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "topic": [o.topic for o in outputs],
            "shard": [shard] * len(outputs),
            "key": [o.key for o in outputs],
            "value": [o.value for o in outputs],
            "time_unix_nano": [o.time_unix_nano for o in outputs],
            "headers": [[{"key": k, "value": v} for k, v in o.headers] for o in outputs],
        }
    )


def to_records(frame: DataFrame, topic: str, *, same_partition: bool) -> DataFrame:
    """Address a fold's output to `topic`: into the shard's own partition, so that watermarks stay true, or by key."""
    return frame.select(
        F.coalesce("topic", F.lit(topic)).alias("topic"),
        (F.col("shard") if same_partition else F.lit(None).cast("int")).alias("partition"),
        "key",
        "value",
        F.expr("time_unix_nano div 1000000").alias("timestamp_ms"),
        "headers",
    )
