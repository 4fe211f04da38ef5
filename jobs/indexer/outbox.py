"""What the indexer says to Kafka: rejected records and its own progress, in one transaction."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NoReturn

import orjson
import structlog
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.client import topic_partitions
from connectors.kafka.deadline import within
from connectors.kafka.security import client_config
from connectors.kafka.transactions import Patience, Row, TransactionalWriter
from infra.contract.offsets import Offsets
from infra.errors import UserError
from jobs.indexer.intake import Interrupted

CALL_SECONDS = 10
DEADLINE_SECONDS = 25  # of a transaction: longer than its calls may take
# What fails is not repeated: a new writer settles the transaction, and the group's offsets say how.
_PATIENCE = Patience(call=CALL_SECONDS, offsets=DEADLINE_SECONDS)

_log = structlog.get_logger(__name__)


class Outbox:
    """Commits offsets and rejected records together, so that a repeated batch can't reject a record twice.

    Only for batches that reject something. For the others a plain commit is enough, as documents overwrite themselves,
    and it doesn't depend on librdkafka's send_offsets_to_transaction, which can hang when the broker dies.
    """

    def __init__(self, bootstrap: str, transactional_id: str, topic: str, stop: threading.Event) -> None:
        self._connection = client_config(bootstrap)
        self._transactional_id = transactional_id
        self._topic = topic
        self._stop = stop
        self._writer = self._open()

    def commit(self, records: Sequence[Mapping[str, Any]], offsets: Offsets, group: Any) -> None:
        """Write the rejected records and commit `offsets` for the consumer whose group metadata is `group`.

        Raises:
            Interrupted: go on from the group's committed offsets.
            UserError: another indexer has taken over this `transactional_id`.
        """
        writer = self._writer

        def transact() -> None:
            writer.begin()
            writer.produce(self._rows(records))
            writer.send_offsets(topic_partitions(offsets), group)
            writer.commit()

        try:
            within(DEADLINE_SECONDS, transact)
        except KafkaException as error:
            cause = self._cause(error)
            self._check_fenced(cause)
            self._recover(cause)
        except TimeoutError as error:
            self._recover(error)

    def _rows(self, records: Sequence[Mapping[str, Any]]) -> Iterator[Row]:
        for record in records:
            yield self._topic, -1, _source(record).encode(), orjson.dumps(record), 0, None

    def _cause(self, failure: KafkaException) -> KafkaException:
        """The error that made the writer useless; a record that is written after it only fails because of it.

        A fenced writer must not be taken for a broken one: to open another one would fence its successor.
        """
        if failure.args[0].code() != KafkaError._FATAL:
            return failure
        try:
            self._writer.commit()  # refused, with the cause
        except KafkaException as cause:
            return cause
        return failure

    def _check_fenced(self, failure: KafkaException) -> None:
        error = failure.args[0]
        if error.code() in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED}:
            raise UserError(
                f"{self._transactional_id}: another indexer took over ({error.str()}); stop one of the two"
            ) from failure

    def _recover(self, failure: Exception) -> NoReturn:
        """Settle the transaction by opening a new writer: that commits what was decided and aborts the rest."""
        self._writer = self._open()
        raise Interrupted(str(failure)) from failure

    def _open(self) -> TransactionalWriter:
        # One lasts milliseconds; one left open holds up the group's offsets.
        settings = {"transaction.timeout.ms": 20_000}
        while True:
            try:
                return TransactionalWriter(self._connection, self._transactional_id, settings, _PATIENCE)
            except KafkaException as error:
                if not error.args[0].retriable() or self._stop.is_set():
                    raise Interrupted(error.args[0].str()) from error
                _log.warning("kafka unavailable", reason=error.args[0].str())


def _source(record: Mapping[str, Any]) -> str:
    source = record["source"]
    return f"{source['topic']}/{source['partition']}/{source['offset']}"
