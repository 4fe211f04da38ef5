"""What a load needs of each job and server, and which limit it meets first."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from infra.contract.topics import TopicMap
from infra.errors import UserError
from ops.capacity.costs import Costs, fit
from ops.capacity.schedule import LOOK_SECONDS, TRIGGER_SECONDS, Outcome, Stage, settle, shares

WINDOW_SECONDS = 10  # of the smallest window, the detector's
LATENESS_SECONDS = 30  # for about so long points wait for their window's end
DAY = 86_400
INDEXED_A_MINUTE = 2  # documents of a series: the windows of 1 min, and those of 5 min each minute
LUCENE_DOCUMENTS = 2**31  # of one shard of an index
TRIED = {"cores of the whole chain": 2, "events a second": 200_000}


@dataclass(frozen=True)
class Load:
    """What comes in. Raises UserError if it contradicts itself."""

    events_per_second: float
    machines: int
    scrape_seconds: float
    busy: float = 0.6  # of the cores, at most, so that a restart catches up
    replication: int = 3
    retention_days: float = 7
    archive_days: float = 90

    def __post_init__(self) -> None:
        if self.points_a_scrape < 1:
            scrapes = self.machines / self.scrape_seconds
            raise UserError(
                f"--events-per-second {self.events_per_second:,.0f}: {self.machines:,} machines that send something "
                f"each {self.scrape_seconds:g} s make {scrapes:,.0f} scrapes a second, more than events; give fewer "
                "machines or a longer --scrape"
            )

    @property
    def series(self) -> int:
        """Of all machines: each sends a point a scrape."""
        return round(self.events_per_second * self.scrape_seconds)

    @property
    def points_a_scrape(self) -> float:
        """Of one machine."""
        return self.series / self.machines

    @property
    def points_a_batch(self) -> float:
        """Of one machine, as enrichment gathers them."""
        return self.points_a_scrape * max(1.0, LOOK_SECONDS / self.scrape_seconds)

    @property
    def updates_per_second(self) -> float:
        """Series that speak in a window of 10 s, a second."""
        return min(self.events_per_second, self.series / WINDOW_SECONDS)


@dataclass(frozen=True)
class JobPlan:
    """What a job needs: executors of one core each, with `memory_bytes` for state in all of them, and how they do.

    Of statistics it is what its processes took at their peak, where that is more than the state.
    """

    job: str
    cores: float
    executors: int
    cpu_us_an_event: float
    memory_bytes: int
    simulated: Outcome


@dataclass(frozen=True)
class Limit:
    """A bound that the load comes near to or exceeds: `ratio` is how often what is needed fits into it."""

    what: str
    needed: float
    limit: float
    advice: str

    @property
    def ratio(self) -> float:
        return self.needed / self.limit


@dataclass(frozen=True)
class Plan:
    """The whole of it. Bytes are of all copies."""

    load: Load
    partitions: int
    jobs: tuple[JobPlan, ...]
    broker_cores: float
    kafka_bytes_per_second: int
    kafka_bytes: int
    delta_bytes_per_day: int
    delta_bytes: int
    documents_per_second: int
    limits: tuple[Limit, ...]  # the nearest first

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        found = asdict(self)
        found["load"] |= {"series": self.load.series, "updates_per_second": self.load.updates_per_second}
        found["limits"] = [asdict(one) | {"ratio": one.ratio} for one in self.limits]
        return found


def plan(load: Load, costs: Costs, topics: TopicMap) -> Plan:
    """Compute what a load needs."""
    partitions = ceil(load.series / costs.limits.series_a_shard)
    jobs = tuple(_jobs(load, costs, partitions))
    # Each task folds whole shards, so the widest job decides: all its tasks have as many.
    widest = max(one.executors for one in jobs)
    partitions = ceil(partitions / widest) * widest
    jobs = tuple(_jobs(load, costs, partitions))
    kafka = load.events_per_second * (costs.kafka.raw_bytes_an_event + costs.kafka.enriched_bytes_an_event)
    kafka += load.updates_per_second * costs.statistics.record_bytes_an_update
    delta = load.events_per_second * (costs.archive.raw_bytes_an_event + costs.archive.enriched_bytes_an_event)
    documents = load.series * INDEXED_A_MINUTE / 60
    return Plan(
        load=load,
        partitions=partitions,
        jobs=jobs,
        broker_cores=load.events_per_second * costs.kafka.cpu_us_an_event / 1e6 * load.replication,
        kafka_bytes_per_second=round(kafka * load.replication),
        kafka_bytes=round(kafka * load.replication * load.retention_days * DAY),
        delta_bytes_per_day=round(delta * DAY),
        delta_bytes=round(delta * DAY * load.archive_days),
        documents_per_second=round(documents),
        limits=tuple(sorted(_limits(load, jobs, partitions, documents, topics), key=lambda one: -one.ratio)),
    )


def _jobs(load: Load, costs: Costs, partitions: int) -> Iterator[JobPlan]:
    events, updates = load.events_per_second, load.updates_per_second
    enrichment, statistics = fit(costs.enrichment.points), fit(costs.statistics.points)
    waiting = costs.statistics.state_bytes_a_point * LATENESS_SECONDS / load.scrape_seconds
    of_series = {
        "statistics": max(costs.statistics.state_bytes_a_series + waiting, costs.statistics.peak_bytes_a_series),
        "detector": costs.detector.state_bytes_a_series,
    }
    cpu_us = {
        "enrichment": enrichment.at(load.points_a_batch),
        "statistics": statistics.at(events / updates),
        "detector": costs.detector.cpu_us_an_update * updates / events,
        "archive": costs.archive.cpu_us_an_event,
    }
    for job, cost in cpu_us.items():
        cores = events * cost / 1e6
        executors = max(1, ceil(cores / load.busy))
        stage = Stage(shares(load.machines, partitions), cost, executors, executors, costs.batch.fixed_seconds)
        memory = round(load.series * of_series.get(job, 0))
        interval = LOOK_SECONDS if job == "enrichment" else TRIGGER_SECONDS
        yield JobPlan(job, cores, executors, cost, memory, settle(stage, events, interval))


def _limits(
    load: Load, jobs: tuple[JobPlan, ...], partitions: int, documents: float, topics: TopicMap
) -> Iterator[Limit]:
    cores, widest = sum(one.cores for one in jobs), max(one.executors for one in jobs)
    yield Limit(
        "partitions of the topics that are sharded by machine",
        partitions,
        topics["events"].partitions,
        f"defaults.partitions: {partitions} in the map of topics, before the first record: a machine stays in its "
        "partition",
    )
    yield Limit(
        "partitions of sink.progress, one for each task of a job",
        widest,
        topics["sink.progress"].partitions,
        f"sink.progress.partitions and KAPPA_SHUFFLE_PARTITIONS of at least {widest}",
    )
    yield Limit(
        "cores of one machine, on which a job is measured",
        cores,
        TRIED["cores of the whole chain"],
        "executors: spark.mode kubernetes, or a Spark cluster; tried for two minutes on one node",
    )
    yield Limit(
        "events a second that were run",
        load.events_per_second,
        TRIED["events a second"],
        "measure on your machines (make bench), and give the figures by --costs",
    )
    yield Limit(
        "documents of statistics in one shard of an index, a day",
        documents * DAY,
        LUCENE_DOCUMENTS,
        "infra/indices.yaml: an index takes 200 million, then the next one follows; index fewer windows",
    )
