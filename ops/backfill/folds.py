"""The folds of a shard, one after the other in one worker: what one writes into its own shard the next one reads.

Through Kafka each fold is a job, and the topic between two of them has a partition for each shard: a shard of one feeds
the shard of the same number of the next. So in a batch they can follow each other without a shuffle.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from pydantic_settings import BaseSettings

from infra.contract.jobs import Job
from infra.contract.topics import TopicMap
from jobs.runtime.job import Fold
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input, Opener, Output
from ops.savepoints.store import Store

_LENGTH = 8  # bytes of the length of a state file's head

OUTPUT = (
    "topic string, partition int, key binary, value binary, timestamp_ms long,"
    " headers array<struct<key:string,value:binary>>, shard int, place long"
)
_HEADER = pa.struct([("key", pa.string()), ("value", pa.binary())])
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("timestamp_ms", pa.int64()),
        ("headers", pa.list_(_HEADER)),
        ("shard", pa.int32()),
        ("place", pa.int64()),
    ]
)


class Row(NamedTuple):
    """A record that a fold has written; without a partition its key decides."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes
    timestamp_ms: int
    headers: list[dict[str, Any]]


@dataclass(frozen=True)
class Stage:
    """A job that folds: what it reads, what it writes by key in the map, the usual one first."""

    job: str
    reads: str
    writes: Mapping[str, str]
    opener: Opener
    whole_topic: bool

    @classmethod
    def of(cls, job: Job, own: BaseSettings | None, topics: TopicMap) -> "Stage":
        """A row of the job table as a stage."""
        fold: Fold = job.implementation()
        (read,) = job.inputs(topics)
        writes = {key: topics[key].name for key in job.writes}
        return cls(job.name, read.name, writes, fold.opener(own, topics), fold.whole_topic)

    def row(self, output: Output, shard: int) -> Row:
        """What it has given, as a record; see jobs.runtime.fold.to_records."""
        topic = self.writes[output.topic] if output.topic else next(iter(self.writes.values()))
        by_key = output.by_key or self.whole_topic
        headers = [{"key": name, "value": value} for name, value in output.headers]
        key = output.key.encode() if output.key is not None else None
        time = max(1, output.time_unix_nano // 1_000_000)
        return Row(topic, None if by_key else shard, key, output.value, time, headers)


@dataclass(frozen=True)
class ShardFolds:
    """Folds what a shard gets in one step, from the state after the step before; shipped to the Python workers."""

    stages: Sequence[Stage]
    folder: str  # of the states
    step: int

    def of_table(self, key: tuple[Any, ...], table: pa.Table) -> pa.Table:
        """The records that the folds write, in their order."""
        shard, table = key[0].as_py(), table.sort_by("offset")
        columns = (table.column(name).to_pylist() for name in ("offset", "partition", "value", "timestamp_ms"))
        topic = self.stages[0].reads
        rows = zip(*columns, strict=True)
        read = [Row(topic, number, None, value, time, []) for offset, number, value, time in rows if offset >= 0]
        found = [(*row, shard, place) for place, row in enumerate(self.fold(shard, read))]
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, one, strict=True)) for one in found], schema=SCHEMA)

    def fold(self, shard: int, read: Iterable[Row]) -> Iterator[Row]:
        """Feed the stages one after the other, and keep their states for the next step."""
        by_topic: dict[str, list[Row]] = {}
        for row in read:
            by_topic.setdefault(row.topic, []).append(row)
        for stage in self.stages:
            for row in self._feed(stage, shard, by_topic.get(stage.reads, [])):
                if row.partition == shard:
                    by_topic.setdefault(row.topic, []).append(row)
                yield row

    def _feed(self, stage: Stage, shard: int, rows: Sequence[Row]) -> list[Row]:
        states = Store.of(self.folder)
        name = f"{stage.job}-{shard}"
        count, parts = read_state(states / str(self.step), name)
        state = stage.opener(parts or None)
        batch = Input(
            stage.reads,
            shard,
            range(count, count + len(rows)),
            [row.value for row in rows],
            [shard if row.partition is None else row.partition for row in rows],
            [row.timestamp_ms for row in rows],
        )
        outputs = batch.feed(state)
        write_state(states / str(self.step + 1), name, count + len(rows), state.dump())
        return [stage.row(output, shard) for output in outputs]


def write_state(folder: Store, name: str, read: int, parts: Parts) -> None:
    """Keep a state with how many records were read for it."""
    head = orjson.dumps([read, [(part, len(content)) for part, content in parts.items()]])
    folder.write(name, len(head).to_bytes(_LENGTH, "big") + head + b"".join(parts.values()))


def read_state(folder: Store, name: str) -> tuple[int, Parts]:
    """What `write_state` has kept; nothing if it has not."""
    try:
        content = folder.read(name)
    except FileNotFoundError:
        return 0, {}
    at = _LENGTH + int.from_bytes(content[:_LENGTH], "big")
    read, described = orjson.loads(content[_LENGTH:at])
    parts: Parts = {}
    for part, length in described:
        parts[part] = content[at : at + length]
        at += length
    return read, parts
