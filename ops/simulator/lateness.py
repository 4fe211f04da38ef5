"""How late an event may be that a running chain judges, for the truth: as enrichment decides it from the log."""

import time

import structlog
from confluent_kafka import KafkaException

from infra.contract.topics import TopicMap
from jobs.runtime.lateness import LatenessFollower

LOOK_SECONDS = 5.0  # decisions are made half a minute ahead

log = structlog.get_logger()


class DecidedLateness:
    """Gives the lateness of a topic at a Kafka timestamp; decisions are looked for again and again."""

    def __init__(self, bootstrap: str, topics: TopicMap) -> None:
        self._follower = LatenessFollower(bootstrap, topics)
        self._looked = 0.0

    def __call__(self, topic: str, timestamp_ms: int) -> int:
        """The lateness in ms; `topic` is one of the map's telemetry."""
        if time.monotonic() > self._looked + LOOK_SECONDS:
            try:
                self._follower.catch_up()
            except KafkaException as error:  # it is asked again, in time for a decision that begins later
                log.warning("decisions on lateness can't be read", error=str(error))
            self._looked = time.monotonic()
        return self._follower.allowed.at(topic, timestamp_ms)
