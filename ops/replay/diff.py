"""Two generations, record by record: what only one of them holds, and which fields differ."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import zip_longest
from typing import Any

import orjson

from connectors.kafka.reader import read_topic
from infra.contract.columnar import to_rows
from infra.contract.topics import TopicMap
from jobs.table import JOBS

Record = dict[str, Any]
Identity = tuple[str, str, int]  # id, phase, time: a novelty is told several times under one id
Reader = Callable[[str], Iterable[tuple[int, bytes]]]  # topic -> (timestamp ms, value) of each record


@dataclass(frozen=True)
class Difference:
    """A record (or event) of which the two generations hold different forms; None where one has none."""

    topic: str
    one: Record | None
    other: Record | None

    @property
    def kind(self) -> str:
        """`only in first`, `only in second` or `changed`."""
        return "only in second" if self.one is None else "only in first" if self.other is None else "changed"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that differ, of a changed record."""
        if self.one is None or self.other is None:
            return ()
        names = self.one.keys() | self.other.keys()
        return tuple(sorted(name for name in names if self.one.get(name) != self.other.get(name)))

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return {"topic": self.topic, "kind": self.kind, "fields": self.fields, "first": self.one, "second": self.other}


@dataclass
class Diff:
    """The comparison of two generations."""

    compared: dict[str, tuple[int, int]] = field(default_factory=dict)  # by topic: records of the first, the second
    differences: list[Difference] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Whether the generations are the same."""
        return not self.differences

    def summary(self) -> Counter[tuple[str, str, str, str]]:
        """How many differences by topic, kind, machine and verdict."""
        return Counter(
            (d.topic, d.kind, str(known.get("machine", "")), str(known.get("verdict", "")))
            for d in self.differences
            for known in [d.one or d.other or {}]
        )


def differing_topics(first: TopicMap, second: TopicMap, jobs: Collection[str]) -> dict[str, tuple[str, str]]:
    """The topics of which the generations have one each: by name in the map, their two names.

    `jobs` are those that both run: a topic that others write too (`events.rejected`: enrichment and indexer) holds only
    a part where these don't run. Without topics that are not archived: what is provisional depends on when watermarks
    came, and is no part of history.
    """
    return {
        key: (first[key].name, second[key].name)
        for key, topic in first.topics.items()
        if topic.archive != "none" and first[key].name != second[key].name
        if (writers := {*JOBS.writers(key)}) and writers <= {*jobs}
    }


def diff(
    topics: Mapping[str, tuple[str, str]],
    read: Reader,
    since_ms: int = 0,
    until_ms: int | None = None,
) -> Diff:
    """Compare the topics' records with timestamps in [since, until]; of `events` each event alone. Watermarks aside.

    Only digests are held in memory (about 200 bytes each); what differs is read a second time.
    """
    found = Diff()
    derived = {name for names in topics.values() for name in names}

    def is_within(time_ms: int) -> bool:
        return since_ms <= time_ms and (until_ms is None or time_ms <= until_ms)

    def records(topic: str, key: str) -> Iterator[Record]:
        for timestamp, value in read(topic):
            if key != "events" and not is_within(timestamp):
                continue
            record = orjson.loads(value)
            if "watermark_unix_nano" in record:
                continue
            if key == "events":
                yield from (event for time, event in _events(record) if is_within(time))
            else:
                yield _comparable(record, derived)

    for key, (one, other) in topics.items():
        first, second = Counter(map(_digest, records(one, key))), Counter(map(_digest, records(other, key)))
        found.compared[key] = first.total(), second.total()
        only_one, only_other = first - second, second - first
        found.differences += _paired(key, _of(records(one, key), only_one), _of(records(other, key), only_other))
    return found


def _events(record: Record) -> Iterator[tuple[int, Record]]:
    """Each event of a record and what is said of it, by its own time in ms: batches decide how they are gathered."""
    common = {name: value for name, value in record.items() if name not in ("id", "source", "events")}
    for event in to_rows(record["events"]):
        identity = f"{record['machine']} {event.get('series', '')}"
        yield -(-event["time_unix_nano"] // 1_000_000), {"id": identity, **common, **event}


def _comparable(record: Record, derived: set[str]) -> Record:
    """Without where it stood in a derived topic: how records and watermarks mix depends on the pace of reading."""
    source = record.get("source")
    return {k: v for k, v in record.items() if k != "source"} if source and source["topic"] in derived else record


def _digest(record: Record) -> bytes:
    return blake2b(orjson.dumps(record, option=orjson.OPT_SORT_KEYS), digest_size=16).digest()


def _of(records: Iterable[Record], wanted: Counter[bytes]) -> dict[Identity, list[Record]]:
    """The records with these digests, by identity."""
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
    """Reads the committed records of a topic up to its end as of now."""

    def read(topic: str) -> Iterator[tuple[int, bytes]]:
        for message in read_topic(bootstrap, topic):
            yield message.timestamp()[1], message.value() or b"null"

    return read
