"""Measures, in a thread of its own, how far the queries of this process are behind: no batch that hangs can hide it."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import structlog
from confluent_kafka import KafkaException

from connectors.kafka.client import Connection
from connectors.kafka.standing import Standing, Standings
from infra.contract.offsets import Partition
from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Topic
from infra.contract.watermarks import FIELD
from infra.errors import UserError
from jobs.runtime import metrics
from jobs.runtime.health import HEALTH, Health
from jobs.runtime.replay import Replay

SECONDS = 10.0
SHOWN = 5  # partitions in a message

log = structlog.get_logger()


@dataclass
class Watched:
    """A query, or a job without Spark, whose progress is measured.

    Attributes:
        name: of the query.
        job: whose it is.
        group: its consumer group.
        topics: what it reads.
        replay: the part of these that it reads.
        from_end: whether it reads a topic from its end if it has committed nothing there, or not at all.
        stops_at_gaps: whether it ends where retention has deleted what it has not read.
        watermarks: the last one, in ms, that it has passed in each partition.
    """

    name: str
    job: str
    group: str
    topics: tuple[Topic, ...]
    replay: Replay = field(default_factory=Replay)
    from_end: bool = False
    stops_at_gaps: bool = True
    watermarks: dict[Partition, int] = field(default_factory=dict)

    def names(self) -> list[str]:
        """The topics on the broker that it reads."""
        return self.replay.subscribed([topic.name for topic in self.topics])

    def watermarked(self) -> set[str]:
        """Those of them that hold watermark records."""
        return {topic.name for topic in self.topics if topic.schema_name and FIELD in SCHEMAS[topic.schema_name].names}

    def bounded(self, standings: Mapping[Partition, Standing]) -> dict[Partition, Standing]:
        """The standings as far as it reads: a replay may end before the log does."""
        end = self.replay.end
        return {
            place: replace(one, end=min(one.end, end.get(place, one.end)))
            for place, one in standings.items()
            if one.has_committed or not self.from_end
        }

    def event_time(self, standings: Mapping[Partition, Standing]) -> int | None:
        """The event time, ms, that is completed in all partitions with watermarks; None if one hasn't had any."""
        self.watermarks |= {place: one.watermark_milli for place, one in standings.items() if one.watermark_milli}
        topics = {topic for topic, _ in self.watermarks}
        if not topics or any(place not in self.watermarks for place in standings if place[0] in topics):
            return None
        return min(self.watermarks.values())


def overtaken(one: Watched, standings: Mapping[Partition, Standing]) -> str:
    """What to tell a person of a query that retention has overtaken: what is lost, and what can be done."""
    gone = {place: standing for place, standing in standings.items() if standing.lost}
    count = sum(standing.lost for standing in gone.values())
    places = ", ".join(
        f"{topic}-{number} {standing.position} to {standing.start - 1}"
        for (topic, number), standing in sorted(gone.items())[:SHOWN]
    )
    more = f" and {len(gone) - SHOWN} partitions more" if len(gone) > SHOWN else ""
    return (
        f"{one.name}: {count} records were deleted before they were read (offsets {places}{more}): it rested for "
        "longer than the topic keeps them. To go on would leave out their results without a sign: see "
        "docs/how-to/operate.md, 'Overtaken by retention'"
    )


class LagWatch:
    """A context manager: while it is open, lag, its age, event time and the headroom to retention are measured."""

    def __init__(self, connection: Connection, watched: Sequence[Watched], health: Health = HEALTH) -> None:
        self._watched, self._health = watched, health
        self._standings = Standings(connection)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lag", daemon=True)
        health.watch(one.name for one in watched)

    def __enter__(self) -> "LagWatch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()

    def _run(self) -> None:
        while not self._over.is_set():
            self.measure()
            self._over.wait(SECONDS)
        self._standings.close()

    def check_retention(self) -> None:
        """Raises UserError if records were deleted before one of the queries has read them."""
        for one in self._watched:
            try:
                standings = self._standings.look(one.group, one.names(), one.replay.start)
            except KafkaException as error:
                log.warning("not known whether records are lost", query=one.name, reason=str(error))
                continue
            if one.stops_at_gaps and any(standing.lost for standing in standings.values()):
                raise UserError(overtaken(one, standings))

    def measure(self) -> None:
        """Measure all queries once."""
        found: dict[str, dict[Partition, Standing]] = {}
        for one in self._watched:
            if (standings := self._look(one)) is not None:
                found[one.name] = standings
            metrics.QUIET.labels(one.job, one.name).set(self._health.quiet_seconds(one.name))
        for job in {one.job for one in self._watched}:
            mine = [(one, found[one.name]) for one in self._watched if one.job == job and one.name in found]
            _observe(job, mine, time.time())

    def _look(self, one: Watched) -> dict[Partition, Standing] | None:
        """Measure a query, for its health and its metrics; None if the latter are not known."""
        try:
            looked = one.bounded(self._standings.look(one.group, one.names(), one.replay.start))
        except (KafkaException, KeyError, ValueError) as error:
            log.warning("lag unknown", query=one.name, reason=str(error))
            self._health.not_measured(one.name)
            return None
        lag = sum(standing.lag for standing in looked.values())
        self._health.measured(one.name, {place: at.position for place, at in looked.items()}, lag)
        try:
            return self._standings.with_times(one.group, looked, one.watermarked())
        except (KafkaException, KeyError, ValueError) as error:
            log.warning("age of the lag unknown", query=one.name, reason=str(error))
            return None


def _observe(job: str, measured: Sequence[tuple[Watched, Mapping[Partition, Standing]]], now: float) -> None:
    """Set a job's metrics; of a partition that several of its queries read, the one that is furthest behind counts."""
    worst: dict[Partition, Standing] = {}
    for _, standings in measured:
        for place, one in standings.items():
            worst[place] = max(worst.get(place, one), one, key=lambda standing: standing.lag)
    for (topic, partition), one in worst.items():
        metrics.LAG.labels(job, topic, partition).set(one.lag)
    _observe_ages(job, worst, {topic.name: topic for one, _ in measured for topic in one.topics}, now)
    times = [time for one, standings in measured if (time := one.event_time(standings)) is not None]
    if times and len(times) == len([one for one, _ in measured if one.watermarks]):
        metrics.observe_watermark(job, min(times))


def _observe_ages(job: str, worst: Mapping[Partition, Standing], topics: Mapping[str, Topic], now: float) -> None:
    for name, topic in topics.items():
        ages = [_age(one, now) for (place, _), one in worst.items() if place == name]
        metrics.LAG_SECONDS.labels(job, name).set(max(ages, default=0.0))
        if topic.cleanup == "delete":
            headroom = topic.retention.total_seconds() - max(ages, default=0.0)
            metrics.HEADROOM.labels(job, name).set(headroom)


def _age(one: Standing, now: float) -> float:
    return max(0.0, now - one.unread_milli / 1000) if one.unread_milli else 0.0
