"""What is under way is carried over in order, and each job begins where it stood. The broker is a fake."""

from types import SimpleNamespace

import orjson
import pytest
from confluent_kafka import KafkaException

from connectors.kafka.partitioner import partition_of
from infra.errors import UserError
from ops.rescale import carry as module
from ops.rescale.carry import Stretch, carry
from ops.rescale.division import Division


class Message:
    """A consumed record."""

    def __init__(self, offset: int, key: str | None, value: dict) -> None:
        self._offset, self._key, self._value = offset, key, orjson.dumps(value)

    def offset(self):
        return self._offset

    def key(self):
        return None if self._key is None else self._key.encode()

    def value(self):
        return self._value

    def timestamp(self):
        return 1, 1_000 + self._offset

    def headers(self):
        return [("kappa.source", b"x")]


class Broker:
    """Partitions of `events`, and what was produced to `events.wide`."""

    def __init__(self, log: dict[int, list[Message]]) -> None:
        self.log, self.written, self.error, self.before = log, [], None, 0

    def read_topic(self, _bootstrap, _topic, begin, partitions):
        (partition,) = partitions
        return (one for one in self.log[partition] if one.offset() >= begin["events", partition])

    def produce(self, _topic, value, key, partition, timestamp, headers, on_delivery):
        self.written.append((partition, key, orjson.loads(value), timestamp, headers))
        on_delivery(self.error, None)

    def poll(self, _seconds):
        return 0

    def flush(self, _seconds):
        return 0

    def ends(self, topics):
        counts = {("events.wide", partition): self.before for partition in range(4)}
        for partition, *_ in self.written:
            counts["events.wide", partition] += 1
        return counts


def machine_of(partition: int) -> str:
    return next(name for name in (f"vm-{n}" for n in range(100)) if partition_of(name.encode(), 4) == partition)


@pytest.fixture
def broker(monkeypatch):
    """Partition 0: two machines' records that part ways, and a watermark. Partition 1 has been read by all."""
    one, other = machine_of(0), machine_of(2)
    log = [
        Message(10, one, {"machine": one, "n": 0}),
        Message(11, other, {"machine": other, "n": 1}),
        Message(13, None, {"watermark_unix_nano": 5}),  # 12 was a transaction's marker
        Message(14, one, {"machine": one, "n": 2}),
        Message(16, one, {"machine": one, "n": 3}),  # of a batch after the savepoint's
    ]
    broker = Broker({0: log, 1: [Message(4, machine_of(1), {"machine": machine_of(1)})]})
    monkeypatch.setattr(module, "read_topic", broker.read_topic)
    monkeypatch.setattr(module, "make_producer", lambda *_: broker)
    monkeypatch.setattr(module, "client_config", lambda bootstrap: {})
    monkeypatch.setattr(module, "Log", lambda bootstrap: SimpleNamespace(ends=broker.ends))
    return broker


STRETCH = Stretch(
    "events",
    "events.wide",
    {
        "statistics": {("events", 0): 10, ("events", 1): 4},
        "rules": {("events", 0): 13, ("events", 1): 4},
        "late": {("events", 0): 15, ("events", 1): 4},
    },
    {("events", 0): 16, ("events", 1): 4},
)
DIVISION = Division(2, 2)


def test_records_go_to_their_parts_in_order_as_they_were(broker):
    carry(STRETCH, DIVISION, "broker")
    found = [(partition, value.get("n"), timestamp) for partition, _, value, timestamp, _ in broker.written]
    assert found == [(0, 0, 1_010), (2, 1, 1_011), (0, None, 1_013), (2, None, 1_013), (0, 2, 1_014)]
    assert {tuple(headers) for *_, headers in broker.written} == {(("kappa.source", b"x"),)}
    assert [key for _, key, *_ in broker.written][2:4] == [None, None]


def test_each_job_begins_behind_what_it_had_read(broker):
    starts = carry(STRETCH, DIVISION, "broker")
    by_job = {job: [offsets["events.wide", partition] for partition in range(4)] for job, offsets in starts.items()}
    assert by_job == {"statistics": [0, 0, 0, 0], "rules": [1, 0, 1, 0], "late": [3, 0, 2, 0]}


def test_a_topic_that_holds_other_records_is_refused(broker):
    broker.before = 1
    with pytest.raises(UserError, match=r"topic 'events.wide': holds other records than were carried over"):
        carry(STRETCH, DIVISION, "broker")


def test_a_record_that_can_not_be_written_is_said(broker):
    broker.error = "refused"
    with pytest.raises(KafkaException, match="refused"):
        carry(STRETCH, DIVISION, "broker")
