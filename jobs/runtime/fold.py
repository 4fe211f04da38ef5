"""Packed state: all rows of one Kafka partition go, in offset order, through one Python call a batch.

A partition is a shard: it holds whole machines, and the watermarks in it say how far event time has come. A fold
therefore needs nothing but its own partition's log, in the order of the log. Its result can't depend on batch sizes, on
the number of cores or on how fast other partitions are read. One call for many series is also what makes Python
affordable: Spark's cost is per group, not per row.
"""

from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import pandas as pd
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from infra.contract.offsets import Partition
from infra.contract.versions import HEADER, upcast
from jobs.runtime.cycles import no_search_for_cycles
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_placement import salted
from jobs.runtime.shard_state import Input, Opener, Output
from jobs.runtime.state_cache import Cached, Caches, Place, of_this_worker

PARTS = "parts"  # the state variable that holds a shard's
KEY = ("shard", "salt")  # of a shard's state
_QUERY = "sql.streaming.queryId"  # the property by which a task knows its query

INITIAL_SCHEMA = "shard int, name string, part binary"  # the states with which a fold begins, a row for each part
_INITIAL_VERSION = "initial"

_OUTPUT = (
    "topic string, shard int, by_key boolean, key string, value binary, time_unix_nano long,"
    " headers array<struct<key:string,value:binary>>, note string, origin string"
)


def fold_partitions(
    frame: DataFrame,
    opener: Opener,
    caches: Caches = of_this_worker,
    written: Mapping[Partition, int] = {},
    initial: DataFrame | None = None,
) -> DataFrame:
    """Fold a stream of Kafka rows, their headers included, shard by shard; columns as in `_OUTPUT`.

    What follows from records before the offsets `written` goes into the state alone: it was written before. The first
    batch of a checkpoint begins with the states `initial`, whose columns are those of INITIAL_SCHEMA.
    """
    return _folded(frame, _Shards(opener, caches, written), F.col("partition"), initial)


def fold_topic(
    frame: DataFrame,
    opener: Opener,
    caches: Caches = of_this_worker,
    written: Mapping[Partition, int] = {},
    initial: DataFrame | None = None,
) -> DataFrame:
    """The same of all partitions at once, for a topic of few records: only the order within each is the log's."""
    return _folded(frame, _Shards(opener, caches, written), F.lit(0), initial)


def _folded(frame: DataFrame, shards: "_Shards", shard: Column, initial: DataFrame | None) -> DataFrame:
    timestamp = F.unix_millis("timestamp").alias("timestamp_ms")
    grouped = None if initial is None else initial.withColumn("salt", salted(F.col("shard"))).groupBy(*KEY)
    return (
        frame.select(
            *(shard.alias("shard"), salted(shard), "topic", "partition", "offset", "value", timestamp, _version())
        )
        .groupBy(*KEY)
        .transformWithStateInPandas(shards, _OUTPUT, "append", "none", grouped)
    )


def _version() -> Column:
    """The version of a record, see `infra.contract.versions`."""
    return F.get(F.filter("headers", lambda header: header["key"] == HEADER), F.lit(0))["value"].alias("version")


class _Shards(StatefulProcessor):
    """Folds each shard's records and keeps its state by part: only parts that changed go to Spark.

    The cache of the worker holds the state too, opened, for the next batch. `version` tells whether another worker or
    machine has folded the shard since, or what was done here was not kept.
    """

    def __init__(self, opener: Opener, caches: Caches, written: Mapping[Partition, int] = {}) -> None:
        self.opener, self.caches, self.written = opener, caches, written

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Open the state of a task's shards."""
        self.version = handle.getValueState("version", "version string")
        self.parts = handle.getMapState(PARTS, "name string", "part binary")

    def handleInitialState(self, key: Any, initialState: Any, timerValues: object) -> None:
        """A shard's state from elsewhere, before its first records."""
        self.version.update((_INITIAL_VERSION,))
        for name, part in zip(initialState["name"], initialState["part"], strict=True):
            self.parts.updateValue((name,), (part,))

    def handleInputRows(self, key: Any, rows: Any, timerValues: object) -> Iterator[pd.DataFrame]:
        """All new records of a shard."""
        shard, records = int(key[0]), pd.concat(list(rows)).sort_values(["partition", "offset"], kind="stable")
        offsets, partitions, times = (records[name].tolist() for name in ("offset", "partition", "timestamp_ms"))
        values = list(map(upcast, records["value"], records["version"]))
        batch = Input(records["topic"].iloc[0], shard, offsets, values, partitions, times)
        task, known = TaskContext.get(), self.version.get()
        assert task
        place = Place(task.getLocalProperty(_QUERY), batch.topic, shard)
        outputs = self._fold(place, known[0] if known else "", batch)
        if outputs:
            yield _to_frame(shard, outputs)

    def _fold(self, place: Place, version: str, batch: Input) -> list[Output]:
        cache = self.caches()
        # Taken out of the cache: if this batch fails half-way, nobody goes on with what it left.
        before = cache.take(place, version) or Cached(self._stored() if version else {})
        with no_search_for_cycles():
            state = before.state or self.opener(before.parts or None)
            before_written, fresh = batch.parted(self.written)
            before_written.feed(state)
            outputs = fresh.feed(state)
            after = self._store(before.parts, state.dump())
        version = _following(version, batch)
        self.version.update((version,))
        cache.put(place, version, Cached(after, state))
        return outputs

    def _stored(self) -> Parts:
        return {name: bytes(part) for (name,), (part,) in self.parts.iterator()}

    def _store(self, before: Parts, after: Parts) -> Parts:
        """`after`, with what is equal as the same objects."""
        same = {name for name, part in after.items() if before.get(name) == part}
        for name in after.keys() - same:
            self.parts.updateValue((name,), (after[name],))
        for name in before.keys() - after.keys():
            self.parts.removeKey((name,))
        return {name: before[name] if name in same else part for name, part in after.items()}

    def close(self) -> None:
        """Nothing is open."""


def _following(version: str, batch: Input) -> str:
    """The state's version after a batch: what was folded into it, and in which steps."""
    last = dict(zip(batch.partitions, batch.offsets, strict=True))
    return blake2b(f"{version} {batch.topic} {sorted(last.items())}".encode(), digest_size=16).hexdigest()


def _to_frame(shard: int, outputs: list[Output]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "topic": [o.topic for o in outputs],
            "shard": [shard] * len(outputs),
            "by_key": [o.by_key for o in outputs],
            "key": [o.key for o in outputs],
            "value": [o.value for o in outputs],
            "time_unix_nano": [o.time_unix_nano for o in outputs],
            "headers": [[{"key": k, "value": v} for k, v in o.headers] for o in outputs],
            "note": [o.note for o in outputs],
            "origin": [o.origin for o in outputs],
        }
    )


def to_records(frame: DataFrame, topics: Mapping[str, str], *, same_partition: bool) -> DataFrame:
    """Address a fold's output: into the shard's own partition, so that watermarks stay true, or by key.

    `topics` are the names, by their keys in the map, of those that the fold writes; the first is its usual one.
    """
    names = F.create_map(*(F.lit(text) for pair in topics.items() for text in pair))
    shard = F.when(~F.col("by_key"), F.col("shard")) if same_partition else F.lit(None).cast("int")
    return frame.select(
        F.element_at(names, F.coalesce("topic", F.lit(next(iter(topics))))).alias("topic"),
        shard.alias("partition"),
        "key",
        "value",
        F.expr("time_unix_nano div 1000000").alias("timestamp_ms"),
        "headers",
        "note",
        "origin",
    )
