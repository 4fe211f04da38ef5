"""What the outbox makes of a failed transaction; the writer is faked."""

import threading

import pytest
from confluent_kafka import KafkaError, KafkaException

from infra.errors import UserError
from jobs.indexer import outbox
from jobs.indexer.intake import Interrupted
from jobs.indexer.outbox import Outbox

RECORD = {"source": {"topic": "statistics", "partition": 0, "offset": 7}}


def failure(code: int, text: str = "") -> KafkaException:
    return KafkaException(KafkaError(code, text))


class Writer:
    """A transactional writer of which producing fails, and committing for the reason of it."""

    opened = 0

    def __init__(self, produce: KafkaException, cause: KafkaException) -> None:
        self._produce, self._cause = produce, cause

    def begin(self) -> None:
        pass

    def produce(self, rows) -> None:
        list(rows)
        raise self._produce

    def commit(self) -> None:
        raise self._cause


@pytest.fixture
def box(monkeypatch):
    """Makes an outbox whose writer fails so; counts the writers that are opened."""
    opened = []

    def make(produce: KafkaException, cause: KafkaException) -> Outbox:
        def open_writer(*_):
            opened.append(Writer(produce, cause))
            return opened[-1]

        monkeypatch.setattr(outbox, "TransactionalWriter", open_writer)
        return Outbox("127.0.0.1:1", "kappa.live.indexer.0", "events.rejected", threading.Event())

    make.opened = opened
    return make


def test_one_that_was_fenced_while_it_produced_ends_and_fences_nobody(box):
    fenced = failure(KafkaError._FENCED, "fenced by a newer instance")
    with pytest.raises(UserError, match="took over"):
        box(failure(KafkaError._FATAL, "Fatal error"), fenced).commit([RECORD], {}, None)
    assert len(box.opened) == 1


def test_any_other_failure_is_settled_by_a_new_writer(box):
    broken = failure(KafkaError.INVALID_PRODUCER_ID_MAPPING, "unknown producer id")
    with pytest.raises(Interrupted, match="unknown producer id"):
        box(failure(KafkaError._FATAL, "Fatal error"), broken).commit([RECORD], {}, None)
    assert len(box.opened) == 2
