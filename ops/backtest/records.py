"""Recorded statistics, one partition at a time: from Kafka, or from the archive for what Kafka no longer has."""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import Protocol

import duckdb
from deltalake import DeltaTable

from connectors.kafka.offsets import Log
from connectors.kafka.reader import read_topic, value_of
from infra.contract.offsets import Offsets
from infra.errors import UserError
from jobs.runtime.object_store import delta_options, plain_url
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import LATEST_MILLI

BATCH = 1_000  # records that are taken at once

Batch = list[bytes]


class Records(Protocol):
    """The records of `statistics` in a stretch of time, watermarks among them. Other processes can be given it."""

    def sizes(self) -> dict[int, int]:
        """By partition: about how many records there are."""
        ...

    def read(self, partition: int) -> Iterator[Batch]:
        """The records of a partition in the order of its log."""
        ...


@dataclass(frozen=True)
class KafkaRecords:
    """Those that stand between these offsets of a topic."""

    bootstrap: str
    topic: str
    begin: Offsets
    end: Offsets

    @classmethod
    def between(cls, bootstrap: str, topic: str, begin_ms: int, end_ms: int | None) -> "KafkaRecords":
        """From the first record not before `begin_ms` to the first one not before `end_ms`, or the present end."""
        log = Log(bootstrap)
        end = log.ends([topic]) if end_ms is None else log.at([topic], end_ms)
        return cls(bootstrap, topic, log.at([topic], begin_ms), end)

    def sizes(self) -> dict[int, int]:
        """By partition: how many offsets; transactions' markers are among them."""
        return {place[1]: max(end - self.begin[place], 0) for place, end in sorted(self.end.items())}

    def read(self, partition: int) -> Iterator[Batch]:
        """The records of a partition in the order of its log."""
        begin, end = (offsets[self.topic, partition] for offsets in (self.begin, self.end))
        if begin >= end:
            return
        found = read_topic(self.bootstrap, self.topic, begin={(self.topic, partition): begin}, partitions=[partition])
        inside = takewhile(lambda message: (message.offset() or 0) < end, found)
        yield from _batches(value_of(message) or b"" for message in inside)


@dataclass(frozen=True)
class ArchivedRecords:
    """Those of a topic in the archive's table `log`, whose Kafka timestamps are in [begin_ms, end_ms)."""

    table: str  # folder or URL
    topic: str
    begin_ms: int
    end_ms: int

    @classmethod
    def between(cls, settings: Settings, topic: str, begin_ms: int, end_ms: int | None) -> "ArchivedRecords":
        """Those of the settings' generation. Raises UserError if there is no archive."""
        table = plain_url(settings.delta_of("log"))
        if not DeltaTable.is_deltatable(table, delta_options(os.environ)):
            raise UserError(f"--source delta: there is no archive at {table}; has the archive job run?")
        return cls(table, topic, begin_ms, LATEST_MILLI if end_ms is None else end_ms)

    def sizes(self) -> dict[int, int]:
        """By partition: how many records."""
        found = self._query("partition, count(*)", "group by partition").fetchall()
        return dict(sorted((int(partition), int(count)) for partition, count in found))

    def read(self, partition: int) -> Iterator[Batch]:
        """The records of a partition in the order of its log."""
        rows = self._query("value", f'and partition = {int(partition)} order by "offset"').to_arrow_reader(BATCH)
        for batch in rows or ():
            yield batch.column(0).to_pylist()

    def _query(self, columns: str, rest: str) -> duckdb.DuckDBPyConnection:
        days = [f"{datetime.fromtimestamp(ms / 1000, UTC):%Y-%m-%d}" for ms in (self.begin_ms, self.end_ms)]
        files = [("topic", "=", self.topic), ("date", ">=", days[0]), ("date", "<=", days[1])]
        connection = duckdb.connect()
        table = DeltaTable(self.table, storage_options=delta_options(os.environ))
        connection.register("log", table.to_pyarrow_dataset(file_pruning_predicate=files))
        inside = f"topic = $1 and epoch_ms(timestamp) >= {self.begin_ms} and epoch_ms(timestamp) < {self.end_ms}"
        return connection.execute(f"select {columns} from log where {inside} {rest}", [self.topic])


def _batches(values: Iterable[bytes]) -> Iterator[Batch]:
    left = iter(values)
    while batch := list(islice(left, BATCH)):
        yield batch
