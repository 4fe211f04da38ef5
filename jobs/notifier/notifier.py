"""The notifier: what it reads becomes deliveries, and each delivery is attempted until it is sent or too old.

It works in turns. A turn has one Kafka transaction, which holds the outcomes of attempts that have ended, the
deliveries that new records make, the attempts that are about to begin, and the offsets of what was read. Only then do
these attempts begin. So whatever was attempted is in the log as `sending`, and what is neither sent nor dead is
attempted after a restart.
"""

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from confluent_kafka import KafkaException
from prometheus_client import Counter, Gauge

from infra.contract.dead_letters import InvalidRecordError, Source, dead_letter
from infra.contract.offsets import Partition
from infra.contract.topics import TopicMap, in_nanoseconds
from jobs.notifier.couriers import Couriers
from jobs.notifier.deliveries import Deliveries
from jobs.notifier.delivery import Delivery
from jobs.notifier.intake import Intake, Whereabouts
from jobs.notifier.journal import Interrupted, Journal
from jobs.notifier.notice import TOPICS, Topic, read_notice
from jobs.notifier.routes import Routing
from jobs.runtime.intake import NANO_PER_MILLI, checked_time, parse, watermark_in
from jobs.runtime.metrics import observe_watermark
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import Message

SENT = Counter("kappa_notifier_sent", "Notifications that a channel has taken", ("channel",))
FAILED = Counter("kappa_notifier_failed", "Attempts that failed", ("channel",))
DEAD = Counter("kappa_notifier_dead_letters", "Notifications given up: they are dead letters", ("channel",))
PENDING = Gauge("kappa_notifier_pending", "Notifications that wait, but for those in quiet hours", ("channel",))
HELD = Gauge("kappa_notifier_held", "Notifications that wait for the end of quiet hours", ("channel",))
FAILING = Gauge("kappa_notifier_failing", "1 while the last attempt of the channel failed", ("channel",))
REJECTED = Counter("kappa_notifier_rejected", "Records that could not be used: they are dead letters")
LOST = Counter("kappa_notifier_lost_records", "Offsets deleted before they were read", ("topic", "partition"))

STAGE = "notifier"
NOT_DELIVERED, LOST_RECORDS = "not_delivered", "lost_records"
IDLE_SECONDS, BUSY_SECONDS, PAUSE_SECONDS = 0.5, 0.05, 1.0
EVICTION = 3600 * 10**9  # of event time, between two evictions

_log = structlog.get_logger(__name__)
Letter = dict[str, Any]


def run(settings: Settings, topics: TopicMap, routing: Routing, stop: threading.Event) -> None:
    """Notify until `stop` is set; then let attempts end, and return. Raises UserError if another notifier took over."""
    couriers = Couriers(routing.channels)
    while not stop.is_set():
        try:
            with Notifier(settings, topics, routing, couriers) as notifier:
                while not stop.is_set():
                    notifier.turn()
                couriers.wait(settings.drain_seconds)
                notifier.settle()
        except (Interrupted, KafkaException) as error:
            _log.warning("kafka unavailable; everything is read again", reason=str(error))
            stop.wait(PAUSE_SECONDS)


@dataclass(frozen=True)
class Turn:
    """What one transaction holds, beside offsets."""

    planned: Sequence[Delivery]
    outcomes: Sequence[Delivery]  # sent, failed or dead
    begun: Sequence[Delivery]
    letters: Sequence[Letter]

    @property
    def states(self) -> list[Delivery]:
        """The newest state of each delivery."""
        return list({one.key: one for one in (*self.planned, *self.outcomes, *self.begun)}.values())


class Notifier:
    """A context manager. Everything that it knows it has read from Kafka."""

    def __init__(self, settings: Settings, topics: TopicMap, routing: Routing, couriers: Couriers) -> None:
        self._routing, self._couriers = routing, couriers
        self._topics: Mapping[str, Topic] = {topics[topic].name: topic for topic in TOPICS}
        self._retention = in_nanoseconds(topics["notifications"].retention)
        self._evicted = 0
        bootstrap, name = settings.kafka_bootstrap, settings.query_of("notifier")
        # First of all: nobody else writes from now on, so that what is read stays true.
        self._journal = Journal(bootstrap, name, topics["notifications"].name, topics["events.rejected"].name)
        self._deliveries = Deliveries()
        for delivery in self._journal.read():
            self._deliveries.apply(delivery)
        self._whereabouts = Whereabouts(bootstrap, topics["novelties"].name)
        self._intake = Intake(bootstrap, name, [topics[topic].name for topic in routing.topics])

    def __enter__(self) -> "Notifier":
        return self

    def __exit__(self, *_: object) -> None:
        self._intake.close()
        self._whereabouts.close()

    def turn(self) -> None:
        """Read, plan, commit, and begin what is due."""
        is_busy = len(self._couriers.idle) < len(self._routing.channels)
        messages = self._intake.gather(BUSY_SECONDS if is_busy else IDLE_SECONDS)
        self._finish_turn(messages, begin=True)

    def settle(self) -> None:
        """Commit the outcomes of the attempts that have ended, and begin no others."""
        self._finish_turn([], begin=False)

    def _finish_turn(self, messages: Sequence[Message], *, begin: bool) -> None:
        outcomes, gaps = self._couriers.outcomes(), dict(self._intake.gaps)
        if messages or outcomes:
            self._whereabouts.catch_up()
            self._see(self._whereabouts.event_time)
        letters = [_lost(place, *gap) for place, gap in gaps.items()]
        planned = self._plan(messages, letters)
        decided = [self._decide(outcome, letters) for outcome in outcomes]
        turn = Turn(planned, decided, self._begin() if begin else (), letters)
        self._commit(turn)
        for gap in gaps:
            del self._intake.gaps[gap]
        for outcome in decided:
            self._couriers.committed(outcome)
        for delivery in turn.begun:
            self._couriers.start(delivery)
        self._report(turn, gaps)
        self._evict()

    def _commit(self, turn: Turn) -> None:
        offsets = self._intake.moved()
        if turn.states or turn.letters or offsets:
            self._journal.commit(turn.states, turn.letters, offsets, self._intake.membership())
            self._intake.committed(offsets)

    def _plan(self, messages: Iterable[Message], letters: list[Letter]) -> list[Delivery]:
        """The deliveries of new records; what can't be used is added to `letters`."""
        planned: list[Delivery] = []
        for message in messages:
            try:
                for delivery in self._deliveries_of(message):
                    self._deliveries.apply(delivery)
                    planned.append(delivery)
            except InvalidRecordError as error:
                letters.append(dead_letter(STAGE, message.source, error, message.value))
        return planned

    def _deliveries_of(self, message: Message) -> Iterable[Delivery]:
        if (watermark := watermark_in(parse(message.value), message)) is not None:
            self._see(watermark)
            return ()
        topic, critical = self._topics[message.source.topic], self._routing.critical_machines
        notice = read_notice(topic, message.value or b"", self._whereabouts, critical)
        # One time that is far ahead would give up and forget everything else.
        latest = (message.source.timestamp_unix_milli + 1) * NANO_PER_MILLI
        self._see(checked_time("time_unix_nano", notice.finding.time_unix_nano, latest))
        return list(self._routing.plan(notice, message.source, self._deliveries))

    def _see(self, event_time: int) -> None:
        if event_time > self._deliveries.event_time:
            self._deliveries.event_time = event_time
            observe_watermark("notifier", event_time // 10**6)

    def _decide(self, outcome: Delivery, letters: list[Letter]) -> Delivery:
        """What follows from an attempt: it is sent, is tried again later, or is too old and becomes a dead letter."""
        is_sent = outcome.is_finished
        if not is_sent and self._deliveries.is_stale(outcome, self._routing.give_up_nano):
            letters.append(_given_up(outcome))
            outcome = outcome.dead()
        self._deliveries.apply(outcome)
        if is_sent:
            self._deliveries.retry_all(outcome.channel)
        elif not outcome.is_finished:
            self._deliveries.retry_later(outcome, time.monotonic())
        return outcome

    def _begin(self) -> list[Delivery]:
        """For each channel that has nothing to do, the delivery that is due."""
        now, clock = time.time_ns(), time.monotonic()
        # Of outcomes that this turn commits, the channels are busy until it has.
        due = (self._deliveries.due(channel, now, clock) for channel in self._couriers.idle)
        begun = [delivery.begun() for delivery in due if delivery]
        for delivery in begun:
            self._deliveries.apply(delivery)
        return begun

    def _evict(self) -> None:
        """Forget what the topics have forgotten too."""
        if self._deliveries.event_time >= self._evicted + EVICTION:
            self._evicted = self._deliveries.event_time
            self._deliveries.evict(self._evicted - self._retention)
            self._whereabouts.evict(self._evicted - self._retention)

    def _report(self, turn: Turn, gaps: Mapping[Partition, tuple[int, int]]) -> None:
        REJECTED.inc(sum(letter["code"] not in (NOT_DELIVERED, LOST_RECORDS) for letter in turn.letters))
        for outcome in turn.outcomes:
            is_sent = outcome.state == "sent"
            (SENT if is_sent else FAILED).labels(outcome.channel).inc()
            FAILING.labels(outcome.channel).set(not is_sent)
            if outcome.state == "dead":
                DEAD.labels(outcome.channel).inc()
            say = _log.info if is_sent else _log.warning
            say(f"notification {outcome.state}", channel=outcome.channel, id=outcome.id, phase=outcome.phase,
                attempt=outcome.attempt, reason=outcome.reason or None)  # fmt: skip
        for (topic, partition), (first, following) in gaps.items():
            LOST.labels(topic, partition).inc(following - first)
            _log.error("records were deleted before they were read", topic=topic, partition=partition,
                       first=first, last=following - 1)  # fmt: skip
        now = time.time_ns()
        for channel in self._routing.channels:
            holds = [one.hold_until_unix_nano > now for one in self._deliveries.open(channel)]
            HELD.labels(channel).set(sum(holds))
            PENDING.labels(channel).set(len(holds) - sum(holds))


def _given_up(delivery: Delivery) -> Letter:
    """The dead letter of a delivery: its id has the channel, as the others may have had the notification."""
    reason = f"channel {delivery.channel}: given up after {delivery.attempt} attempts: {delivery.reason}"
    record = delivery.content.record.encode() if delivery.content else None
    letter = dead_letter(STAGE, delivery.source, InvalidRecordError(NOT_DELIVERED, reason), record)
    return letter | {"id": f"{letter['id']}/{delivery.channel}"}


def _lost(place: Partition, first: int, following: int) -> Letter:
    """The dead letter of what retention has deleted before it was read."""
    reason = f"offsets {first} to {following - 1} are gone"
    letter = dead_letter(STAGE, Source(*place, first, 0), InvalidRecordError(LOST_RECORDS, reason), None)
    letter["source"]["last_offset"] = following - 1
    return letter | {"events": following - first}
