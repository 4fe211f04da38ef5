"""What the indexer says to Kafka: rejected records and its own progress, in one transaction."""

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import orjson
import structlog
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from connectors.kafka.client import client_config
from connectors.sinks.deadline import within
from infra.errors import UserError
from jobs.indexer.intake import Interrupted

Positions = Mapping[tuple[str, int], int]

CALL_SECONDS = 10
DEADLINE_SECONDS = 25  # of a transaction: longer than its calls may take

_log = structlog.get_logger(__name__)


class Outbox:
    """Commits positions and rejected records together, so that a repeated batch can't reject a record twice.

    Only for batches that reject something. For the others a plain commit is enough, as documents overwrite themselves,
    and it doesn't depend on librdkafka's send_offsets_to_transaction, which can hang when the broker dies.
    """

    def __init__(self, bootstrap: str, transactional_id: str, topic: str, stop: threading.Event) -> None:
        self._config = {
            **client_config(bootstrap),
            "transactional.id": transactional_id,
            "transaction.timeout.ms": 20_000,  # one lasts milliseconds; one left open holds up the group's offsets
        }
        self._topic = topic
        self._stop = stop
        self._producer = self._open()

    def commit(self, records: Sequence[Mapping[str, Any]], positions: Positions, group: Any) -> None:
        """Write the rejected records and commit `positions` for the consumer whose group metadata is `group`.

        Raises:
            Interrupted: go on from the group's committed offsets.
            UserError: another indexer has taken over this `transactional_id`.
        """
        offsets = [TopicPartition(name, partition, offset) for (name, partition), offset in positions.items()]
        producer = self._producer

        def transact() -> None:
            producer.begin_transaction()
            for record in records:
                producer.produce(self._topic, key=_place(record), value=orjson.dumps(record))
            producer.send_offsets_to_transaction(offsets, group, CALL_SECONDS)
            producer.commit_transaction(CALL_SECONDS)

        try:
            within(DEADLINE_SECONDS, transact)
        except KafkaException as error:
            self._check_fenced(error)
            self._recover(error)
        except TimeoutError as error:
            self._recover(error)

    def _check_fenced(self, failure: KafkaException) -> None:
        error = failure.args[0]
        if error.code() in {KafkaError._FENCED, KafkaError.PRODUCER_FENCED}:
            name = self._config["transactional.id"]
            raise UserError(f"{name}: another indexer took over ({error.str()}); stop one of the two") from failure

    def _recover(self, failure: Exception) -> NoReturn:
        """Settle the transaction by a new producer's start: it commits what was decided and aborts the rest."""
        self._producer = self._open()
        raise Interrupted(str(failure)) from failure

    def _open(self) -> Producer:
        while True:
            producer = Producer(self._config)
            try:
                producer.init_transactions(CALL_SECONDS)
            except KafkaException as error:
                if not error.args[0].retriable() or self._stop.is_set():
                    raise Interrupted(error.args[0].str()) from error
                _log.warning("kafka unavailable", reason=error.args[0].str())
            else:
                return producer


def _place(record: Mapping[str, Any]) -> str:
    source = record["source"]
    return f"{source['topic']}/{source['partition']}/{source['offset']}"
