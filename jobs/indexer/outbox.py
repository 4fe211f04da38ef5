"""What the indexer says to Kafka: rejected records and its own progress, in one transaction."""

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
import structlog
from confluent_kafka import KafkaException, Producer, TopicPartition

from infra.errors import UserError

Positions = Mapping[tuple[str, int], int]

CALL_SECONDS = 10

_log = structlog.get_logger(__name__)


class Aborted(Exception):
    """The transaction came to nothing: neither records nor positions were committed."""


class Outbox:
    """Commits positions and rejected records together, so that a repeated batch can't reject a record twice.

    Batches without rejects take the same way: one path to be right, and the broker fences a second indexer of the same
    `transactional_id`, which a plain commit would not.
    """

    def __init__(self, bootstrap: str, transactional_id: str, topic: str, stop: threading.Event) -> None:
        self._id = transactional_id
        self._topic = topic
        self._stop = stop
        self._producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id})
        self._insist(self._producer.init_transactions)

    def commit(self, records: Sequence[Mapping[str, Any]], positions: Positions, group: Any) -> None:
        """Write the rejected records and commit `positions` for the consumer whose group metadata is `group`.

        Raises:
            Aborted: nothing was committed; the batch may be tried again.
            UserError: another indexer has taken over this `transactional_id`.
        """
        offsets = [TopicPartition(name, partition, offset) for (name, partition), offset in positions.items()]
        try:
            self._producer.begin_transaction()
            for record in records:
                self._producer.produce(self._topic, key=_place(record), value=orjson.dumps(record))
            self._insist(self._producer.send_offsets_to_transaction, offsets, group)
            self._insist(self._producer.commit_transaction)
        except KafkaException as error:
            self._give_up(error)

    def _give_up(self, failure: KafkaException) -> None:
        error = failure.args[0]
        if error.fatal():
            raise UserError(f"{self._id}: another indexer took over ({error.str()}); stop one of the two") from failure
        if not error.txn_requires_abort():
            raise failure
        self._insist(self._producer.abort_transaction)
        raise Aborted(error.str()) from failure

    def _insist(self, call: Callable[..., None], *arguments: Any) -> None:
        """Repeat a call while Kafka asks for it, until told to stop: the next start settles what's left open."""
        while True:
            try:
                return call(*arguments, CALL_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise
                if self._stop.is_set():
                    raise Aborted(error.args[0].str()) from error
                _log.warning("kafka unavailable", reason=error.args[0].str())


def _place(record: Mapping[str, Any]) -> str:
    source = record["source"]
    return f"{source['topic']}/{source['partition']}/{source['offset']}"
