"""100,000 mutated records through the indexer's conversion, in plain Python: each becomes documents that Elasticsearch
takes, or a dead letter; nothing raises."""

import os
import random
from copy import deepcopy

import orjson
import pytest

from connectors.sinks.elasticsearch import LARGEST_BYTES, Action
from jobs.indexer import documents
from jobs.indexer.batch import AHEAD, MERGED, UNREADABLE, Batch, Message, convert, reject
from tests.fuzz.inputs import mutate
from tests.unit.jobs.indexer.test_documents import INCIDENT, NOVELTY, REJECTED, STATISTICS

COUNT = int(os.environ.get("KAPPA_FUZZ_INDEXER", "25000"))  # of each indexed topic
BATCH = 500
SEEDS = {"statistics": STATISTICS, "novelties": NOVELTY, "incidents": INCIDENT, "rejected": REJECTED}
HOSTILE = [
    None, True, False, 0, -1, 1.5, -1e308, 2**63, 2**64 - 1, -(2**63), 10**15, "", "x", "start", "end",
    "\x00", "\U0001f600" * 20_000, "h" * 600, [], [None], ["a", 1], {}, {"a": {"b": {}}}, [[[[]]]], [1] * 50,
]  # fmt: skip


def hostile(record: object, rng: random.Random) -> object:
    """The record with a value anywhere in it replaced, removed or doubled; sometimes several."""
    record = deepcopy(record)
    for _ in range(rng.choice((1, 1, 2, 4))):
        holder, key = rng.choice(list(places(record)))
        if rng.random() < 0.15:
            del holder[key]
        elif rng.random() < 0.15 and isinstance(holder, list):
            holder.append(holder[key])
        else:
            holder[key] = deepcopy(rng.choice(HOSTILE))
        if not record:
            break
    return record


def places(value):
    """Every (container, key or index) in a parsed record."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(items):
        yield value, key
        if isinstance(inner, dict | list):
            yield from places(inner)


def bad_bytes(kind: str, rng: random.Random) -> bytes:
    if rng.random() < 0.5:
        return mutate(orjson.dumps(SEEDS[kind]), rng)
    return orjson.dumps(hostile(SEEDS[kind], rng))


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from strings(inner)


@pytest.mark.parametrize("kind", SEEDS)
def test_every_mutated_record_is_indexed_or_a_dead_letter(kind):
    rng = random.Random(kind)
    faults = found = 0
    for first in range(0, COUNT, BATCH):
        numbers = range(first, min(COUNT, first + BATCH))
        messages = [Message(kind, 0, n, n + 1, 5, b"vm-1", bad_bytes(kind, rng)) for n in numbers]
        for message in messages:
            (alone,) = convert([message], {kind: kind})
            check(kind, message, alone)
            faults += len(alone.faults)
        (batch,) = convert(messages, {kind: kind})  # their documents have the same ids: they are merged
        check_documents(kind, batch)
        found += len(batch.documents)
    assert faults > COUNT / 5
    assert found > COUNT / BATCH


def check(kind: str, message: Message, batch: Batch) -> None:
    """The message is a dead letter, or has documents, or there is nothing in it to be indexed."""
    check_documents(kind, batch)
    for fault in batch.faults:
        assert fault.code in (UNREADABLE, AHEAD)
        assert len(orjson.dumps(reject(fault, 1))) < 1_000_000
    if not batch.faults and not batch.documents:
        record = orjson.loads(message.value)
        assert record.keys() & {"control", "watermark_unix_nano"} or record["statistics"]["series"] == []


def check_documents(kind: str, batch: Batch) -> None:
    for (_, identity), document in batch.documents.items():
        version = documents.version(document) if kind in MERGED else None
        assert version is None or 0 <= version < 2**63
        assert 0 < len(identity.encode()) <= 128
        assert len(Action("index", identity, document, version).lines()) < LARGEST_BYTES
        assert max(map(len, strings(document))) <= documents.TEXT_BYTES
