"""Converts Kafka messages to Elasticsearch documents, and what can't be converted to dead letters; without any I/O."""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from jobs.indexer import documents
from jobs.indexer.documents import Document

Kind = str  # of documents: `index` in the map of topics
Key = tuple[Kind, str]  # of a document: its kind and its id

MERGED: tuple[Kind, ...] = ("novelties", "incidents")  # several records (start, updates, end) make one document
UNREADABLE = "unreadable_record"
REFUSED = "elasticsearch_refused"
# A dead letter, with these bytes in base64, has to fit into Kafka's 1 MB; `source` says where all of them are.
KEPT_BYTES = 500_000
REASON_CHARACTERS = 2_000

CONVERTERS: dict[Kind, Callable[[documents.Record], dict[str, Document]]] = {
    "statistics": documents.statistics,
    "novelties": documents.novelties,
    "incidents": documents.incidents,
    "rejected": documents.rejected,
}


@dataclass(frozen=True)
class Message:
    """A consumed message. Without a value it is a tombstone, or the end of a partition and only has offsets."""

    topic: str
    partition: int
    offset: int
    next_offset: int
    timestamp_unix_milli: int = 0
    key: bytes | None = None
    value: bytes | None = None


@dataclass(frozen=True)
class Fault:
    """Why a message, or some of its documents, could not be indexed; `code` is that of the dead letter."""

    message: Message
    code: str
    reason: str


@dataclass
class Batch:
    """The documents made of some messages, the last message of each document, and the messages that failed."""

    documents: dict[Key, Document] = field(default_factory=dict)
    origins: dict[Key, Message] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def add(self, kind: Kind, message: Message, value: bytes) -> None:
        """Convert the value of one message and add its documents; a value that can't be converted becomes a fault."""
        try:
            converted = CONVERTERS[kind](orjson.loads(value))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.faults.append(Fault(message, UNREADABLE, f"{type(error).__name__}: {error}"))
            return
        for identity, document in converted.items():
            self.merge((kind, identity), document)
            self.origins[kind, identity] = message

    def merge(self, key: Key, document: Document) -> None:
        """Add a document; one of the kinds MERGED is merged with an earlier one of its id, any other replaces it."""
        known = self.documents.get(key)
        self.documents[key] = documents.merge(known, document) if known and key[0] in MERGED else document


def convert(messages: Iterable[Message], kinds: Mapping[str, Kind]) -> Batch:
    """The documents of messages; `kinds` gives the kind of documents by topic."""
    batch = Batch()
    for message in messages:
        if message.value is not None:
            batch.add(kinds[message.topic], message, message.value)
    return batch


def reject(fault: Fault, events: int) -> dict[str, Any]:
    """The dead letter (schemas.REJECTED) of a message of which `events` documents could not be indexed.

    Its id is made of the message's topic, partition and offset alone, so that a duplicate can be recognised.
    """
    message = fault.message
    record = {
        "id": f"indexer/{message.topic}/{message.partition}/{message.offset}",
        "code": fault.code,
        "reason": fault.reason[:REASON_CHARACTERS],
        "source": {
            "topic": message.topic,
            "partition": message.partition,
            "offset": message.offset,
            "timestamp_unix_milli": message.timestamp_unix_milli,
        },
        "value": base64.b64encode((message.value or b"")[:KEPT_BYTES]).decode(),
        "events": events,
    }
    if message.key is not None:
        record |= {"key": base64.b64encode(message.key).decode(), "machine": message.key.decode(errors="replace")}
    return record
