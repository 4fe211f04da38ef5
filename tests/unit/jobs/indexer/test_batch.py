import base64

import orjson

from infra.contract import schemas
from jobs.indexer.batch import KEPT_BYTES, REFUSED, UNREADABLE, Fault, Message, convert, reject
from jobs.indexer.intake import next_offsets
from tests.unit.jobs.indexer.test_documents import NOVELTY, REJECTED, STATISTICS

KINDS = {"statistics": "statistics", "novelties": "novelties", "events.rejected": "rejected"}


def message(topic: str, offset: int, value: object, key: bytes | None = b"vm-1") -> Message:
    content = value if isinstance(value, bytes) else orjson.dumps(value)
    return Message(topic, 0, offset, offset + 1, 1234, key, content)


def test_messages_of_all_kinds_are_converted():
    batch = convert(
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
    batch = convert([message("novelties", 0, NOVELTY), message("novelties", 1, end)], KINDS)
    document = batch.documents["novelties", "n1"]
    assert (document["phase"], document["score"], document["ended"]) == ("end", 14.5, 60_000)
    assert batch.origins["novelties", "n1"].offset == 1


def test_what_cannot_be_read_is_a_fault_and_the_rest_goes_on():
    broken = [b"{broken", b"[]", b"null", b'{"id":"x","machine":"m","window":3}', b'{"id":"\xff"}']
    messages = [message("statistics", offset, value) for offset, value in enumerate(broken)]
    batch = convert([*messages, message("statistics", 9, STATISTICS)], KINDS)
    assert [(fault.message.offset, fault.code) for fault in batch.faults] == [(n, UNREADABLE) for n in range(5)]
    assert len(batch.documents) == 2


def test_tombstones_and_ends_of_partitions_have_no_documents():
    batch = convert([Message("statistics", 0, 3, 4), Message("novelties", 1, 8, 8)], KINDS)
    assert (batch.documents, batch.faults) == ({}, [])


def test_the_next_offsets_are_what_comes_next():
    messages = [message("a", 3, b""), message("b", 9, b""), message("a", 4, b""), Message("b", 0, 12, 12)]
    assert next_offsets(messages) == {("a", 0): 5, ("b", 0): 12}


def test_a_rejected_record_tells_where_it_came_from_and_why():
    record = reject(Fault(message("statistics", 7, b"\xffraw"), REFUSED, "mapper says no"), events=3)
    assert record == {
        "id": "indexer/statistics/0/7",
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
