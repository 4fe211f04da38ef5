"""The order of a transactional writer's calls, on a producer that remembers them."""

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connectors.kafka import transactions
from connectors.kafka.transactions import NoAnswerError, Patience, TransactionalWriter

OFFSETS = [TopicPartition("in", 0, 5)]


class FakeProducer:
    """Remembers the calls; those that `failures` names fail with these errors, in turn."""

    def __init__(self, settings, failures):
        self.settings, self.failures, self.calls = settings, failures, []

    def _call(self, name, *facts):
        self.calls.append((name, *facts))
        if errors := self.failures.get(name):
            raise errors.pop(0)

    def init_transactions(self, seconds):
        self._call("init", seconds)

    def begin_transaction(self):
        self._call("begin")

    def produce(self, topic, value, key, partition, on_delivery, callback, timestamp, headers):
        self._call("produce", topic, partition, key, value, timestamp, headers)

    def poll(self, seconds):
        self._call("poll")

    def send_offsets_to_transaction(self, offsets, group, seconds):
        self._call("offsets", offsets, group, seconds)

    def commit_transaction(self, seconds):
        self._call("commit", seconds)

    def purge(self):
        self._call("purge")

    def abort_transaction(self, seconds):
        self._call("abort", seconds)


@pytest.fixture
def open_writer(monkeypatch):
    def open_writer(patience=transactions._RAISE_AT_ONCE, **failures):
        monkeypatch.setattr(
            transactions,
            "make_producer",
            lambda connection, settings: FakeProducer({**connection, **settings}, failures),
        )
        return TransactionalWriter({"bootstrap.servers": "here:1"}, "kappa.x", {"linger.ms": 20}, patience)

    return open_writer


def error(code, **facts):
    return KafkaException(KafkaError(code, "as told", **facts))


def test_a_transaction_is_a_fixed_order_of_calls(open_writer):
    writer = open_writer()
    writer.begin()
    writer.produce([("out", -1, b"k", b"v", 1_000, None), ("out", 1, None, None, 0, [("h", b"1")])])
    writer.send_offsets(OFFSETS, "group")
    writer.commit()
    assert writer.producer.settings["transactional.id"] == "kappa.x"
    assert writer.producer.calls == [
        ("init", 30.0),
        ("begin",),
        ("produce", "out", -1, b"k", b"v", 1_000, None),
        ("produce", "out", 1, None, None, 0, [("h", b"1")]),
        ("offsets", OFFSETS, "group", 30.0),
        ("commit", 30.0),
    ]


def test_errors_that_pass_are_waited_out_for_as_long_as_it_is_told_to(open_writer):
    loading = KafkaError.COORDINATOR_LOAD_IN_PROGRESS
    writer = open_writer(Patience(retry=10), init=[error(loading)], offsets=[error(loading)], commit=[error(loading)])
    writer.begin()
    writer.send_offsets(OFFSETS, "group")
    writer.commit()
    assert [name for name, *_ in writer.producer.calls] == [
        *("init", "init"),
        "begin",
        *("offsets", "offsets"),
        *("commit", "commit"),
    ]


@pytest.mark.parametrize("name", ["send_offsets_to_transaction", "abort_transaction"])
def test_a_call_that_does_not_return_makes_the_writer_useless(open_writer, monkeypatch, name):
    writer, never = open_writer(Patience(retry=10, offsets=0.05)), threading.Event()
    monkeypatch.setattr(writer.producer, name, lambda *_: never.wait())
    with pytest.raises(NoAnswerError, match=r"kappa\.x: no answer in 0\.05 s"):
        writer.send_offsets(OFFSETS, "group") if "offsets" in name else writer.abort()
    never.set()


def test_errors_are_raised_at_once_without_patience(open_writer):
    writer = open_writer(commit=[error(KafkaError.COORDINATOR_LOAD_IN_PROGRESS)])
    with pytest.raises(KafkaException):
        writer.commit()
    assert writer.producer.calls[1:] == [("commit", 30.0)]


def test_a_full_queue_is_waited_for(open_writer):
    writer = open_writer(produce=[BufferError()])
    writer.produce([("out", -1, b"k", b"v", 1_000, None)])
    assert [name for name, *_ in writer.producer.calls] == ["init", "produce", "poll", "produce"]


def test_a_record_that_is_refused_is_named(open_writer):
    writer = open_writer(produce=[error(KafkaError.MSG_SIZE_TOO_LARGE)])
    with pytest.raises(KafkaException) as raised:
        writer.produce([("out", -1, b"k", b"value", 1_000, None)])
    assert raised.value.__notes__ == ["to out, key b'k', 5 bytes"]


def test_what_can_not_be_aborted_is_left_to_the_next_writer(open_writer, caplog):
    writer = open_writer(abort=[error(KafkaError._FENCED)])
    writer.begin()
    writer.abandon()
    assert writer.producer.calls[2:] == [("purge",), ("abort", 5)]
    assert "kappa.x: transaction left to its successor" in caplog.text
