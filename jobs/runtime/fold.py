"""Packed state: all rows of one Kafka partition go, in offset order, through one Python call a batch.

A partition is a shard: it holds whole machines, and the ticks in it say how far event time has come. A fold therefore
needs nothing but its own partition's log, in the order of the log, and its result can't depend on batch sizes, on the
number of cores or on how fast other partitions are read. One call for many series is also what makes Python affordable:
Spark's cost is per group, not per row.
"""

import gc
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import orjson
import pandas as pd
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

# As text: bytes are pickled by Spark as a text of Latin-1, character by character, which took a fifth of a job's time.
_STATE = "state string"
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


@dataclass(frozen=True)
class Output:
    """A record to write: its key, JSON, event time, headers, and its topic if that isn't the fold's usual one."""

    key: str | None
    value: bytes
    time_unix_nano: int
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str | None = None

    @classmethod
    def of_tick(cls, time_unix_nano: int) -> "Output":
        """That what follows in this shard is no older."""
        return cls(None, orjson.dumps({"tick_unix_nano": time_unix_nano}), time_unix_nano)


# (state so far or None, the new records) -> (state, what to write). Must be the same however the log is cut.
Fold = Callable[[bytes | None, Input], tuple[bytes, list[Output]]]


class Kept:
    """What this worker made of a shard's state last: if no other has folded it since, it needs no decoding."""

    def __init__(self) -> None:
        self.text, self.state = "", b""

    def decoded(self, text: str) -> bytes:
        """The packed state."""
        if text != self.text:
            self.text, self.state = text, decoded(text)
        return self.state

    def encoded(self, state: bytes) -> str:
        """The same as the text that Spark keeps."""
        self.text, self.state = b2a_base64(state, newline=False).decode("ascii"), state
        return self.text


def decoded(text: str) -> bytes:
    """A packed state from what Spark keeps of it."""
    return a2b_base64(text)


_KEPT: dict[tuple[str, int], Kept] = {}


def fold_shards(frame: DataFrame, fold: Fold) -> DataFrame:
    """Fold a stream of Kafka rows shard by shard; columns topic, shard, key, value, time_unix_nano, headers."""
    return _folded(frame, fold, F.col("partition"))


def fold_together(frame: DataFrame, fold: Fold) -> DataFrame:
    """The same of all partitions at once, for a topic of few records: only the order within each is the log's."""
    return _folded(frame, fold, F.lit(0))


def _folded(frame: DataFrame, fold: Fold, shard: Column) -> DataFrame:
    def step(key: tuple[int], chunks: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        rows = pd.concat(list(chunks)).sort_values(["partition", "offset"], kind="stable")
        lists = (rows[name].tolist() for name in ("offset", "value", "partition"))
        batch = Input(rows["topic"].iloc[0], int(key[0]), *lists)
        kept = _KEPT.setdefault((batch.topic, batch.shard), Kept())
        with _no_search_for_cycles():
            after, outputs = fold(kept.decoded(state.get[0]) if state.exists else None, batch)
        state.update((kept.encoded(after),))
        yield _to_frame(int(key[0]), outputs)

    return (
        frame.select(shard.alias("shard"), "topic", "partition", "offset", "value")
        .groupBy("shard")
        .applyInPandasWithState(step, _OUTPUT, _STATE, "append", GroupStateTimeout.NoTimeout)
    )


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
    """Address a fold's output to `topic`: into the shard's own partition, so that ticks stay true, or by key."""
    return frame.select(
        F.coalesce("topic", F.lit(topic)).alias("topic"),
        (F.col("shard") if same_partition else F.lit(None).cast("int")).alias("partition"),
        "key",
        "value",
        F.expr("time_unix_nano div 1000000").alias("timestamp_ms"),
        "headers",
    )
