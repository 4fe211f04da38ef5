"""Compares two generations record by record: which records only one of them has, and which fields differ."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, zip_longest
from typing import Any

import orjson

from connectors.kafka.reader import read_topic, value_of
from infra.contract.columnar import to_rows
from infra.contract.topics import TopicMap
from infra.contract.watermarks import is_watermark
from jobs.table import JOBS

Record = dict[str, Any]
Identity = tuple[str, str, int]  # id, phase, time: several records of one novelty have the same id
Reader = Callable[[str], Iterable[tuple[int, bytes]]]  # topic -> (timestamp ms, value) of each record


@dataclass(frozen=True)
class Difference:
    """A record (or event) that differs between two generations, as each has it; None where one doesn't have it."""

    topic: str
    one: Record | None
    other: Record | None

    @property
    def kind(self) -> str:
        """`only in first`, `only in second` or `changed`."""
        return "only in second" if self.one is None else "only in first" if self.other is None else "changed"

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields of a changed record that differ."""
        if self.one is None or self.other is None:
            return ()
        names = self.one.keys() | self.other.keys()
        return tuple(sorted(name for name in names if self.one.get(name) != self.other.get(name)))

    def as_dict(self) -> dict[str, Any]:
        """The difference as JSON."""
        return {"topic": self.topic, "kind": self.kind, "fields": self.fields, "first": self.one, "second": self.other}


@dataclass
class Diff:
    """The comparison of two generations."""

    compared: dict[str, tuple[int, int]] = field(default_factory=dict)  # by topic: records of the first, the second
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether there are no differences."""
        return not self.differences

    @property
    def shares(self) -> dict[str, float]:
        """By topic, of those that hold any, the share of the records that differ."""
        differing = Counter(one.topic for one in self.differences)
        return {topic: differing[topic] / max(counts) for topic, counts in self.compared.items() if max(counts)}

    def summary(self) -> Counter[tuple[str, str, str, str]]:
        """The number of differences by (topic, kind, machine, verdict)."""
        return Counter(
            (d.topic, d.kind, str(known.get("machine", "")), str(known.get("verdict", "")))
            for d in self.differences
            for known in [d.one or d.other or {}]
        )


def differing_topics(first: TopicMap, second: TopicMap, jobs: Collection[str]) -> dict[str, tuple[str, str]]:
    """The topics that can be compared: by their key in the map, the names of the two generations' own topics.

    `jobs` are those that both generations run: a topic that other jobs write too (`events.rejected`: nearly all) is
    incomplete without them. Topics that are not archived are left out: provisional results depend on when
    watermarks arrived.
    """
    return {
        key: (first[key].name, second[key].name)
        for key, topic in first.topics.items()
        if topic.archive != "none" and first[key].name != second[key].name
        if (writers := _needed_writers(key)) and writers <= {*jobs}
    }


def _needed_writers(key: str) -> set[str]:
    """The jobs without which a topic is incomplete: an optional one counts only where no other writes the topic."""
    writers = JOBS.writers(key)
    return {name for name in writers if not JOBS[name].optional} or {*writers}


def diff(
    topics: Mapping[str, tuple[str, str]],
    read: Reader,
    since_ms: int = 0,
    until_ms: int | None = None,
) -> Diff:
    """Compare the records of topics with timestamps from `since_ms` to `until_ms`, without watermarks.

    Records of `events` are compared event by event. Only digests are kept in memory (about 200 bytes each); the records
    that differ are read a second time.
    """
    found = Diff()
    derived = {name for names in topics.values() for name in names}

    def is_within(time_ms: int) -> bool:
        return since_ms <= time_ms and (until_ms is None or time_ms <= until_ms)

    def records(topic: str, key: str) -> Iterator[Record]:
        return _events_of(read(topic), is_within) if key == "events" else _records_of(read(topic), is_within, derived)

    for key, (one, other) in topics.items():
        first, second = Counter(map(_digest, records(one, key))), Counter(map(_digest, records(other, key)))
        found.compared[key] = first.total(), second.total()
        only_one, only_other = first - second, second - first
        found.differences += _paired(key, _of(records(one, key), only_one), _of(records(other, key), only_other))
    return found


def _records_of(
    values: Iterable[tuple[int, bytes]], is_within: Callable[[int], bool], derived: set[str]
) -> Iterator[Record]:
    """The comparable form of each record within the time, by its Kafka timestamp."""
    records = (orjson.loads(value) for timestamp, value in values if is_within(timestamp))
    return (_comparable(record, derived) for record in records if not is_watermark(record))


def _events_of(values: Iterable[tuple[int, bytes]], is_within: Callable[[int], bool]) -> Iterator[Record]:
    """Each event within the time, by its own time."""
    records = (orjson.loads(value) for _, value in values)
    events = chain.from_iterable(_events(record) for record in records if not is_watermark(record))
    return (event for time, event in events if is_within(time))


def _events(record: Record) -> Iterator[tuple[int, Record]]:
    """The time in ms and the content of each event of a record: how events are coalesced depends on micro-batches."""
    common = {name: value for name, value in record.items() if name not in ("id", "source", "events")}
    for event in to_rows(record["events"]):
        identity = f"{record['machine']} {event.get('series', '')}"
        yield -(-event["time_unix_nano"] // 1_000_000), {"id": identity, **common, **event}


def _comparable(record: Record, derived: set[str]) -> Record:
    """A record without its offset in a derived topic: that depends on the number of watermarks between the records.

    The id of a dead letter that another stage than enrichment made has that offset in it.
    """
    source = record.get("source")
    if not source or source["topic"] not in derived:
        return record
    kept = {name: value for name, value in record.items() if name != "source"}
    return kept | {"id": f"{record['stage']}/{record['code']}"} if "stage" in record else kept


def _digest(record: Record) -> bytes:
    return blake2b(orjson.dumps(record, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _of(records: Iterable[Record], wanted: Counter[bytes]) -> dict[Identity, list[Record]]:
    """The records that have these digests, by identity."""
    found: dict[Identity, list[Record]] = {}
    for record in records if wanted else ():
        digest = _digest(record)
        if wanted[digest] > 0:
            wanted[digest] -= 1
            found.setdefault(_identity(record), []).append(record)
    return found


def _identity(record: Record) -> Identity:
    return str(record["id"]), str(record.get("phase", "")), int(record.get("time_unix_nano", 0))


def _paired(
    topic: str, first: Mapping[Identity, list[Record]], second: Mapping[Identity, list[Record]]
) -> Iterator[Difference]:
    for identity in sorted(first.keys() | second.keys()):
        for one, other in zip_longest(first.get(identity, ()), second.get(identity, ())):
            yield Difference(topic, one, other)


def reader(bootstrap: str) -> Reader:
    """A Reader of the committed records of a topic, up to its present end."""

    def read(topic: str) -> Iterator[tuple[int, bytes]]:
        for message in read_topic(bootstrap, topic):
            yield message.timestamp()[1], value_of(message) or b"null"

    return read
