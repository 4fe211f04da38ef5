import base64

import orjson

from infra.contract import schemas
from infra.contract.dead_letters import KEPT_BYTES
from infra.contract.indices import load_lifecycles
from jobs.indexer import batch as batches
from jobs.indexer.batch import AHEAD, AHEAD_MILLI, LOST, REFUSED, UNREADABLE, Fault, Message, convert, lost, reject
from jobs.indexer.intake import next_offsets
from tests.unit.jobs.indexer.test_documents import NOVELTY, REJECTED, STATISTICS

KINDS = {"statistics": "statistics", "novelties": "novelties", "events.rejected": "rejected"}


def message(topic: str, offset: int, value: object, key: bytes | None = b"vm-1") -> Message:
    content = value if isinstance(value, bytes) else orjson.dumps(value)
    return Message(topic, 0, offset, offset + 1, 1234, key, content)


def test_messages_of_all_kinds_are_converted():
    (batch,) = convert(
        [
            message("statistics", 0, STATISTICS),
            message("novelties", 5, NOVELTY),
            message("events.rejected", 9, REJECTED),
        ],
        KINDS,
    )
    kinds = [kind for kind, _ in batch.documents]
    assert kinds == ["statistics", "statistics", "novelties", "rejected"]
    assert {(kind, origin.topic, origin.offset) for (kind, _), origin in batch.origins.items()} == {
        ("statistics", "statistics", 0),
        ("novelties", "novelties", 5),
        ("rejected", "events.rejected", 9),
    }
    assert batch.faults == []


def test_states_of_a_novelty_in_one_batch_become_one_document():
    end = NOVELTY | {"phase": "end", "time_unix_nano": 60_000_000_000, "score": 1.0}
    (batch,) = convert([message("novelties", 0, NOVELTY), message("novelties", 1, end)], KINDS)
    document = batch.documents["novelties", "n1"]
    assert (document["phase"], document["score"], document["ended"]) == ("end", 14.5, 60_000)
    assert batch.origins["novelties", "n1"].offset == 1


def test_what_cannot_be_read_is_a_fault_and_the_rest_goes_on():
    broken = [
        b"{broken",
        b"[]",
        b"null",
        b'"watermark_unix_nano"',
        b'{"id":"x","machine":"m","window":3}',
        b'{"id":"\xff"}',
        b"[" * 100_000,
        orjson.dumps(STATISTICS | {"machine": ["m"]}),
        orjson.dumps(STATISTICS | {"statistics": {"series": ["a"], "mean": ["high"]}}),
        orjson.dumps(STATISTICS | {"statistics": {"series": ["a", "b"], "mean": [1.0]}}),
        orjson.dumps(STATISTICS | {"statistics": {"series": [None], "mean": [1.0]}}),
        orjson.dumps(STATISTICS | {"window": STATISTICS["window"] | {"end_unix_nano": -5}}),
    ]
    messages = [message("statistics", offset, value) for offset, value in enumerate(broken)]
    (batch,) = convert([*messages, message("statistics", 99, STATISTICS)], KINDS)
    assert [(fault.message.offset, fault.code) for fault in batch.faults] == [
        (n, UNREADABLE) for n in range(len(broken))
    ]
    assert len(batch.documents) == 2


def test_windows_that_are_not_indexed_have_no_documents_and_are_no_faults():
    lifecycles = load_lifecycles()
    sizes = [(10.0, 0), (60.0, 2), (300.0, 2)]
    for size, count in sizes:
        record = STATISTICS | {"window": STATISTICS["window"] | {"size_seconds": size}}
        (batch,) = convert([message("statistics", 0, record)], KINDS, lifecycles)
        assert (len(batch.documents), batch.faults) == (count, []), size
    (batch,) = convert([message("statistics", 0, STATISTICS | {"window": 3})], KINDS, lifecycles)
    assert [fault.code for fault in batch.faults] == [UNREADABLE]


def test_what_is_far_ahead_of_the_brokers_clock_is_a_dead_letter():
    at = 1234 + AHEAD_MILLI
    records = [
        STATISTICS | {"window": STATISTICS["window"] | {"end_unix_nano": milli * 1_000_000}} for milli in (at, at + 1)
    ]
    (batch,) = convert([message("statistics", offset, record) for offset, record in enumerate(records)], KINDS)
    assert [(fault.code, fault.message.offset) for fault in batch.faults] == [(AHEAD, 1)]
    assert {document["@timestamp"] for document in batch.documents.values()} == {at}


def test_tombstones_and_ends_of_partitions_have_no_documents():
    (batch,) = convert([Message("statistics", 0, 3, 4), Message("novelties", 1, 8, 8)], KINDS)
    assert (batch.documents, batch.faults) == ({}, [])


def test_the_next_offsets_are_what_comes_next():
    messages = [message("a", 3, b""), message("b", 9, b""), message("a", 4, b""), Message("b", 0, 12, 12)]
    assert next_offsets(messages) == {("a", 0): 5, ("b", 0): 12}


def test_a_rejected_record_tells_where_it_came_from_and_why():
    record = reject(Fault(message("statistics", 7, b"\xffraw"), REFUSED, "mapper says no"), events=3)
    assert record == {
        "id": "indexer/statistics/0/7",
        "stage": "indexer",
        "code": "elasticsearch_refused",
        "reason": "mapper says no",
        "source": {"topic": "statistics", "partition": 0, "offset": 7, "timestamp_unix_milli": 1234},
        "key": base64.b64encode(b"vm-1").decode(),
        "value": base64.b64encode(b"\xffraw").decode(),
        "machine": "vm-1",
        "events": 3,
    }
    assert set(record) <= set(schemas.REJECTED.names)


def test_a_rejected_record_fits_into_a_message():
    fault = Fault(message("statistics", 7, b"x" * 3_000_000, key=None), REFUSED, "y" * 1_000_000)
    record = reject(fault, events=1)
    assert len(orjson.dumps(record)) < 1_000_000
    assert base64.b64decode(record["value"]) == b"x" * KEPT_BYTES
    assert "machine" not in record


def test_a_watermark_is_no_document():
    (batch,) = convert([message("novelties", 0, {"watermark_unix_nano": 1})], KINDS)
    assert (batch.documents, batch.faults) == ({}, [])


def test_batches_are_bounded_and_nothing_is_lost_between_them(monkeypatch):
    monkeypatch.setattr(batches, "MOST_DOCUMENTS", 4)
    found = list(
        convert([message("statistics", n, STATISTICS | {"id": f"r{n}"}) for n in range(5)], KINDS)  # two documents each
    )
    assert [len(batch.documents) for batch in found] == [4, 4, 2]


def test_a_gap_in_the_log_is_a_dead_letter_with_its_offsets():
    gap = Message("statistics", 2, 100, 160, is_gap=True)
    fault = lost(gap)
    assert fault is not None
    record = reject(fault, fault.events)
    assert (record["code"], record["events"], record["reason"]) == (LOST, 60, "offsets 100 to 159 are gone")
    assert [record["source"][name] for name in ("partition", "offset", "last_offset")] == [2, 100, 159]
    assert lost(Message("statistics", 2, 100, 101)) is None
    assert next(iter(convert([gap], KINDS))).documents == {}
