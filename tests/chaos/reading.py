"""What topics and Delta tables hold."""

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import unquote

import orjson
import pyarrow.parquet as pq

from connectors.kafka import reader
from ops.savepoints.store import Store


class Place(NamedTuple):
    """Where a record stands in the log."""

    topic: str
    partition: int
    offset: int


class Record(NamedTuple):
    """A record of a topic."""

    place: Place
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def read_topic(bootstrap: str, topic: str, tail: int | None = None) -> list[Record]:
    """Every committed record of a topic by now, or those of each partition's last `tail` offsets, in order."""
    return sorted(
        Record(Place(m.topic(), m.partition(), m.offset()), m.timestamp()[1], m.key(), m.value())
        for m in reader.read_topic(bootstrap, topic, tail)
    )


def read_table(url: str, columns: list[str]) -> Iterator[dict]:
    """The live rows of a Delta table, by its own log; `topic` may be a partition column."""
    folder = Store.of(url)
    for file, values in _live_files(folder).items():
        wanted = [column for column in columns if column not in values]
        fixed = {column: values[column] for column in columns if column in values}
        for row in pq.ParquetFile(f"{folder.path}/{file}", filesystem=folder.files).read(wanted).to_pylist():
            yield row | fixed


def _live_files(folder: Store) -> dict[str, dict[str, str]]:
    """Data files with their partition values: those added and not removed."""
    live: dict[str, dict[str, str]] = {}
    log = folder / "_delta_log"
    for commit in (name for name in log.names() if "/" not in name and name.endswith(".json")):
        for line in log.read(commit).splitlines():
            action = orjson.loads(line)
            if added := action.get("add"):
                live[unquote(added["path"])] = added["partitionValues"]
            elif removed := action.get("remove"):
                live.pop(unquote(removed["path"]), None)
    return live
