"""From Kafka messages to documents and to rejected records: pure, no server."""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from jobs.indexer import documents
from jobs.indexer.documents import Document

Kind = str  # of documents: what the map of topics calls `index`
Key = tuple[Kind, str]

LIVES: tuple[Kind, ...] = ("novelties", "incidents")  # of them several records make one document
UNREADABLE = "unreadable_record"
REFUSED = "elasticsearch_refused"
# In base64, within a rejected record, it has to fit into Kafka's 1 MB; `source` says where the rest is.
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
    """What was read at one place of a topic; without a value it is a tombstone or only says how far reading came."""

    topic: str
    partition: int
    offset: int
    next_offset: int
    timestamp_unix_milli: int = 0
    key: bytes | None = None
    value: bytes | None = None


@dataclass(frozen=True)
class Fault:
    """Why (a part of) one message didn't become documents."""

    message: Message
    code: str
    reason: str


@dataclass
class Batch:
    """The documents of some messages, each with the last message that it came from, and the messages without any."""

    documents: dict[Key, Document] = field(default_factory=dict)
    origins: dict[Key, Message] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def add(self, kind: Kind, message: Message, value: bytes) -> None:
        """Add the documents of one message's value; states of one novelty or incident become one document."""
        try:
            converted = CONVERTERS[kind](orjson.loads(value))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            self.faults.append(Fault(message, UNREADABLE, f"{type(error).__name__}: {error}"))
            return
        for identity, document in converted.items():
            self.merge((kind, identity), document)
            self.origins[kind, identity] = message

    def merge(self, key: Key, document: Document) -> None:
        """Join a document with the one that's there; only LIVES have more than one state."""
        known = self.documents.get(key)
        self.documents[key] = documents.merge(known, document) if known and key[0] in LIVES else document


def convert(messages: Iterable[Message], kinds: Mapping[str, Kind]) -> Batch:
    """The documents of messages; `kinds` says by topic what they are."""
    batch = Batch()
    for message in messages:
        if message.value is not None:
            batch.add(kinds[message.topic], message, message.value)
    return batch


def reject(fault: Fault, events: int) -> dict[str, Any]:
    """The record for events.rejected (schemas.REJECTED); `events` documents of the message were lost to the fault.

    Its id comes from the message's place alone: told again, it can be recognised.
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
