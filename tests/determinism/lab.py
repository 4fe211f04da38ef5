"""One recorded hour of the simulated cloud, and the ways in which the chain can be led through it."""

import os
import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import orjson
import yaml
from confluent_kafka import Producer

from connectors.kafka import admin
from connectors.kafka.offsets import Log, missing
from connectors.kafka.producer import CollectorProducer
from infra.contract.topics import DEFAULT_MAP, LIVE, TopicMap, load_topics
from infra.jars import default_jars
from jobs.runtime.shard_state import Input
from jobs.runtime.watermarks import last_watermarks
from jobs.statistics.settings import load_windows
from jobs.statistics.shard import Shard
from jobs.table import JOBS
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from tests.chaos.processes import Job
from tests.chaos.reading import Record, read_topic
from tests.waiting import until

START = 1_790_000_000 * SECOND
HOUR = 3600 * SECOND
# What comes after the hour lets the watermarks pass its end, whichever batch was the last to be killed.
TRAIL = 180 * SECOND
PATIENCE_SECONDS = 900.0
FAULTS = (
    "late:vm-05@+5m/20m",
    "malformed:vm-03@+3m/2m",
    "wrong_clock:vm-06@+10m/10m",
    "silence:vm-02@+20m/8m",
    "log_burst:vm-04@+30m/2m",
    "new_vm:vm-new@+40m",
)


@dataclass(frozen=True)
class Found:
    """What a way gave: the final records of the hour, partition after partition, in the order of their log."""

    how: str
    records: list[tuple[int, bytes, bytes]]

    @property
    def sha256(self) -> str:
        digest = sha256()
        for partition, key, value in self.records:
            digest.update(b"%d %s %d %s" % (partition, key, len(value), value))
        return digest.hexdigest()

    def facts(self) -> dict[str, object]:
        return {"how": self.how, "records": len(self.records), "sha256": self.sha256}


@dataclass
class Lab:
    """A broker with the hour in its telemetry topics, and generations of the chain over it."""

    home: Path
    bootstrap: str
    jobs: list[Job] = field(default_factory=list)

    @property
    def topics_file(self) -> Path:
        return self.home / "topics.yaml"

    def topics(self, generation: str) -> TopicMap:
        return JOBS.topics_in(load_topics(self.topics_file), generation)

    def prepare(self) -> None:
        """The map with the sender's clock: compressed time is the recorded hour's, not the broker's.

        That hour lies longer ago than the retention.
        """
        declared = yaml.safe_load(DEFAULT_MAP.read_text())
        declared["telemetry"]["timestamp"] = declared["topics"]["inventory"]["timestamp"] = "CreateTime"
        for settings in (declared["defaults"], declared["topics"]["statistics.early"]):
            settings["retention"] = "3650d"
        self.topics_file.write_text(yaml.safe_dump(declared, sort_keys=False))
        admin.apply(admin.connect(self.bootstrap), self.topics(LIVE))

    def record(self) -> None:
        """Feed the hour: out of order, with late machines, a wrong clock, and unlike many machines a partition."""
        cloud = Cloud(START, HOUR + TRAIL, machines=12, faults=tuple(parse(fault) for fault in FAULTS))
        simulation = Simulation(cloud)
        feed.run(simulation, CollectorProducer(self.bootstrap, simulation.topics()), live=False)

    def start(self, job: str, generation: str, **settings: object) -> Job:
        """A job of a generation as a process."""
        environment = {
            "KAPPA_HOME": str(self.home),
            "KAPPA_JARS": str(default_jars()),
            "KAPPA_TOPICS_FILE": str(self.topics_file),
            "KAPPA_KAFKA_BOOTSTRAP": self.bootstrap,
            "KAPPA_GENERATION": generation,
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_TRIGGER_SECONDS": "0.2",
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
            **{f"KAPPA_{name.upper()}": str(value) for name, value in settings.items()},
        }
        started = Job(job, ("run", job), {**os.environ, **environment}, self.home / f"log/{generation}-{job}.log")
        started.start()
        self.jobs.append(started)
        return started

    def create(self, generation: str) -> None:
        """The topics that a generation writes."""
        admin.apply(admin.connect(self.bootstrap), self.topics(generation))

    def reached(self, generation: str, topic: str = "statistics") -> dict[int, int]:
        """The newest watermark in each partition of a topic."""
        return last_watermarks(self.bootstrap, self.topics(generation)[topic].name, tail=2_000)

    def wait(self, generation: str, *partitions: int, topic: str = "statistics") -> None:
        """Returns when these partitions (all, if none is named) are complete to the end of the hour."""
        wanted = partitions or range(self.topics(generation)[topic].partitions)

        def complete() -> bool:
            watermarks = self.reached(generation, topic)
            return all(watermarks.get(partition, 0) >= START + HOUR for partition in wanted)

        self._until(complete, f"{topic} of generation {generation} is not through")

    def wait_for_incidents(self) -> None:
        """Returns when the live chain has made incidents of all its novelties to the end of the hour."""
        self.wait(LIVE, topic="novelties")
        log = Log(self.bootstrap)
        ends = log.ends([self.topics(LIVE)["novelties"].name])
        self._until(lambda: not missing(log.committed(f"kappa.{LIVE}.incidents", ends), ends), "incidents lag behind")

    def _until(self, done: Callable[[], bool], otherwise: str) -> None:
        def done_or_dead() -> bool:
            for job in self.jobs:
                assert job.code is None, f"{job.log}: {job.output()[-800:]}"
            return done()

        until(done_or_dead, PATIENCE_SECONDS, otherwise, pause=1.0)

    def stop(self) -> None:
        for job in self.jobs:
            job.stop()
        self.jobs.clear()

    def found(self, how: str, generation: str, topic: str = "statistics") -> Found:
        """What the generation says of the hour in one of its topics."""
        records = read_topic(self.bootstrap, self.topics(generation)[topic].name)
        return Found(how, [(r.place.partition, r.key, r.value) for r in records if r.key and _is_of_the_hour(r.value)])

    def events(self) -> dict[int, list[Record]]:
        """The log of each partition of `events`, as the live chain has written it."""
        records = read_topic(self.bootstrap, self.topics(LIVE)["events"].name)
        return {number: list(group) for number, group in groupby(records, key=lambda record: record.place.partition)}

    def write_events(self, generation: str, partition: int, records: Iterable[Record]) -> None:
        """Into the same partition of a generation's own `events`."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "linger.ms": 50})
        topic = self.topics(generation)["events"].name
        for record in records:
            producer.produce(topic, record.value, record.key, partition, timestamp=record.timestamp_ms)
            producer.poll(0)
        producer.flush(60)

    # The ways

    def live(self, how: str) -> Found:
        """With the detector, whose incidents are a query of its application."""
        for job in ("enrichment", "statistics", "detector"):
            self.start(job, LIVE, max_offsets_per_trigger=3_000)
        self.record()
        self.wait(LIVE)
        self.wait_for_incidents()
        return self._end(how, LIVE)

    def replay(self, how: str, generation: str, **settings: object) -> Found:
        self.create(generation)
        for job in ("enrichment", "statistics"):
            self.start(job, generation, **settings)
        return self._end(how, generation)

    def killed(self, how: str, generation: str, times: int, **settings: object) -> Found:
        """Each job in turn dies at once whenever the chain has come further, and starts again."""
        self.create(generation)
        jobs = [self.start(job, generation, **settings) for job in ("statistics", "enrichment")]
        for number in range(times):
            before = sum(self.reached(generation).values())
            until(lambda old=before: sum(self.reached(generation).values()) > old, PATIENCE_SECONDS, "no progress")
            job = jobs[number % len(jobs)]
            job.kill()
            job.start()
        return self._end(how, generation)

    def apart(self, how: str, generation: str) -> Found:
        """One partition after the other, an hour apart, each with the records between two watermarks in any order.

        No watermark is contradicted by that.
        """
        self.create(generation)
        self.start("statistics", generation)
        order = random.Random(7)
        for partition, records in reversed(self.events().items()):
            self.write_events(generation, partition, _shuffled(records, order))
            self.wait(generation, partition)
        return self._end(how, generation)

    def without_spark(self, how: str, later: int = 0) -> Found:
        """The fold at once; with `later`, each watermark comes after so many more records, as in larger batches."""
        windows, found = load_windows(), []
        for partition, records in self.events().items():
            values = [record.value for record in _with_later_watermarks(records, later)]
            outputs = Shard(windows).feed(Input("events", partition, range(len(values)), values))
            found += [(partition, o.key.encode(), o.value) for o in outputs if o.key and not o.topic]
        return Found(how, [record for record in found if _is_of_the_hour(record[2])])

    def _end(self, how: str, generation: str) -> Found:
        self.wait(generation)
        self.stop()
        return self.found(how, generation)


def _is_of_the_hour(value: bytes) -> bool:
    record = orjson.loads(value)
    time = record["window"]["end_unix_nano"] if "window" in record else record["time_unix_nano"]
    return bool(time <= START + HOUR)


def _shuffled(records: list[Record], order: random.Random) -> Iterator[Record]:
    """The records in another order, the watermarks (which have no key) where they were."""
    for is_watermark, part in groupby(records, key=lambda record: record.key is None):
        between = list(part)
        yield from between if is_watermark else order.sample(between, len(between))


def _with_later_watermarks(records: list[Record], later: int) -> list[Record]:
    """Each watermark (which has no key) behind so many of the records that follow it, if there are as many."""
    places = ((at + later * (record.key is None), at) for at, record in enumerate(records))
    return [records[at] for _, at in sorted(places)]


def differences(one: Found, other: Found) -> Iterator[str]:
    """What only one of them has."""
    for name, mine, yours in ((one.how, one, other), (other.how, other, one)):
        lacking = set(yours.records)
        for partition, key, value in mine.records:
            if (partition, key, value) not in lacking:
                yield f"only {name}: partition {partition} {value[:300]!r}"
