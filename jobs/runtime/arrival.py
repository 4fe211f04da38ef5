"""A copy of an application arrives: it says so in Kafka before Spark starts, which takes long.

Of copies that begin at once, only the last one is needed: the others would take the machine's time from it, and stand
back. And a copy that finds another one at work knows that nobody waits for it yet.
"""

import threading
import time
from contextlib import AbstractContextManager
from uuid import uuid4

import structlog
from confluent_kafka import Consumer, TopicPartition

from connectors.kafka.client import fetch_committed, open_consumer
from connectors.kafka.markers import ProgressSettings
from connectors.kafka.retries import retrying
from jobs.runtime.commits import batches_done, driver_of, present_owner, taken_over

STAND_BACK_SECONDS = 60.0  # in which a copy that has arrived later takes over
LOOK_SECONDS = 0.5

log = structlog.get_logger()


class Arrival:
    """What this copy has found, and left, when it began: `settings` are those of the application's first query."""

    def __init__(self, settings: ProgressSettings) -> None:
        self._settings, self._driver = settings, driver_of(settings)
        self._token = uuid4().hex
        self._owner, self._done = present_owner(settings), batches_done(self._driver)
        self._deadline = time.monotonic() + STAND_BACK_SECONDS
        with self._arrivals() as consumer:
            noted = [TopicPartition(settings.progress_topic, 0, 0, metadata=self._token)]
            retrying(settings.retry_seconds)(lambda: consumer.commit(offsets=noted, asynchronous=False))

    def stand_back(self, stop: threading.Event) -> None:
        """While a later copy begins, let it take over: until STAND_BACK_SECONDS after the arrival, as it may fail.

        Raises TakenOverError when it has taken over.
        """
        while time.monotonic() < self._deadline:
            if self._is_last() or stop.wait(LOOK_SECONDS):
                return
            if (owner := present_owner(self._settings)) != self._owner:
                raise taken_over(self._settings.query, owner)
        if not self._is_last():
            log.warning("goes on: another copy began later but hasn't taken over", seconds=STAND_BACK_SECONDS)

    def another_works(self) -> bool:
        """Whether another copy has committed a micro-batch since."""
        return batches_done(self._driver) > self._done

    def _is_last(self) -> bool:
        with self._arrivals() as consumer:
            wanted = [TopicPartition(self._settings.progress_topic, 0)]
            (found,) = retrying(self._settings.retry_seconds)(lambda: fetch_committed(consumer, wanted))
        return bool(found.metadata == self._token)

    def _arrivals(self) -> AbstractContextManager[Consumer]:
        return open_consumer(self._settings.connection, f"{self._settings.query}.arrival")
