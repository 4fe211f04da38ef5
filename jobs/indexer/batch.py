"""Converts Kafka messages to Elasticsearch documents, and what can't be converted to dead letters; without any I/O."""

import base64
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from infra.contract.dead_letters import InvalidRecordError, Source, dead_letter
from infra.contract.indices import Lifecycles
from jobs.indexer import documents
from jobs.indexer.documents import Document

Kind = str  # of documents: `index` in the map of topics
Key = tuple[Kind, str]  # of a document: its kind and its id

MERGED: tuple[Kind, ...] = ("novelties", "incidents")  # several records (start, updates, end) make one document
STAGE = "indexer"
UNREADABLE = "unreadable_record"
REFUSED = "elasticsearch_refused"
LOST = "lost_records"
AHEAD = "ahead"
AHEAD_MILLI = (
    86_400_000  # of its record's Kafka timestamp, which brokers bound by their clock: each day ahead is an index
)
MOST_DOCUMENTS = 20_000  # of a batch, unless a single record has more: a bound of memory
KEPT_NAME = 1_000  # bytes of a key

CONVERTERS: dict[Kind, Callable[[documents.Record], dict[str, Document]]] = {
    "statistics": documents.statistics,
    "novelties": documents.novelties,
    "incidents": documents.incidents,
    "rejected": documents.rejected,
}


@dataclass(frozen=True)
class Message:
    """A consumed message. Without a value it is a tombstone, or only has offsets: the end of a partition, or a gap."""

    topic: str
    partition: int
    offset: int
    next_offset: int
    timestamp_unix_milli: int = 0
    key: bytes | None = None
    value: bytes | None = None
    is_gap: bool = False  # from `offset` to before `next_offset` the log has nothing any more


@dataclass(frozen=True)
class Fault:
    """Why a message, or some of its documents, could not be indexed; `code` is that of the dead letter."""

    message: Message
    code: str
    reason: str
    events: int = 1  # how many documents, or lost records, it is about


# Whatever bytes are in a topic: what a conversion may raise.
_UNREADABLE = (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError)


@dataclass
class Batch:
    """The documents made of some messages, the last message of each document, and the messages that failed."""

    documents: dict[Key, Document] = field(default_factory=dict)
    origins: dict[Key, Message] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    lifecycles: Lifecycles | None = None  # say which windows are indexed; None: all

    def add(self, kind: Kind, message: Message, value: bytes) -> None:
        """Convert the value of one message and add its documents; a value that can't be converted becomes a fault."""
        try:
            record = orjson.loads(value)
            if self.lifecycles and not self.lifecycles.of(kind, record):
                return
            converted = CONVERTERS[kind](record)
        except _UNREADABLE as error:
            self.faults.append(Fault(message, UNREADABLE, f"{type(error).__name__}: {error}"))
            return
        latest = max((document["@timestamp"] for document in converted.values()), default=0)
        if latest > message.timestamp_unix_milli + AHEAD_MILLI:
            self.faults.append(Fault(message, AHEAD, f"its time, {latest} ms since 1970, is more than a day ahead"))
            return
        for identity, document in converted.items():
            self.merge((kind, identity), document)
            self.origins[kind, identity] = message

    def merge(self, key: Key, document: Document) -> None:
        """Add a document; one of the kinds MERGED is merged with an earlier one of its id, any other replaces it."""
        known = self.documents.get(key)
        self.documents[key] = documents.merge(known, document) if known and key[0] in MERGED else document


def convert(
    messages: Iterable[Message], kinds: Mapping[str, Kind], lifecycles: Lifecycles | None = None
) -> Iterator[Batch]:
    """The documents of messages in batches of bounded size; `kinds` gives the kind of documents by topic.

    `lifecycles` say which windows are indexed; without them, all are.
    """
    batch = Batch(lifecycles=lifecycles)
    for message in messages:
        if message.value is None:
            continue
        batch.add(kinds[message.topic], message, message.value)
        if len(batch.documents) >= MOST_DOCUMENTS:
            yield batch
            batch = Batch(lifecycles=lifecycles)
    yield batch


def lost(message: Message) -> Fault | None:
    """The fault of a gap: which offsets were deleted before they were read. None for any other message."""
    if not message.is_gap:
        return None
    count = message.next_offset - message.offset
    return Fault(message, LOST, f"offsets {message.offset} to {message.next_offset - 1} are gone", count)


def reject(fault: Fault, events: int) -> dict[str, Any]:
    """The dead letter (schemas.REJECTED) of a message of which `events` documents could not be indexed.

    That of a gap in the log has the first and the last of the lost offsets.

    Its id is made of the message's topic, partition and offset alone, so that a duplicate can be recognised.
    """
    message = fault.message
    source = Source(message.topic, message.partition, message.offset, message.timestamp_unix_milli)
    letter = dead_letter(STAGE, source, InvalidRecordError(fault.code, fault.reason), message.value)
    record = letter | {"events": events}
    if fault.code == LOST:
        record["source"]["last_offset"] = message.next_offset - 1
    if message.key is not None:
        key = message.key[:KEPT_NAME]
        record |= {"key": base64.b64encode(key).decode(), "machine": key.decode(errors="replace")}
    return record
