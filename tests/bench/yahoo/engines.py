"""The engines of the Yahoo benchmark as processes on one broker: ours, Flink SQL and Kafka Streams."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from connectors.kafka.admin import apply, connect
from connectors.kafka.client import make_producer
from connectors.kafka.security import client_config
from infra.jars import default_jars, fetch
from infra.jdk import SPARK_JAVA, find_jdk
from jobs.runtime.settings import Settings
from tests.bench.chain.lab import Lab
from tests.bench.streams import build
from tests.bench.yahoo import job
from tests.bench.yahoo.ads import Ads
from tests.chaos.processes import Job

PORT, OURS_PORT, STREAMS_PORT = 31700, 31710, 31711  # below those that the kernel gives to clients
OURS, FLINK, STREAMS = "ours", "flink", "streams"
ENGINES = (OURS, FLINK, STREAMS)
# Which answer questions about their state, and where. Flink has no queryable state since 2.0.
QUESTIONS = {OURS: OURS_PORT, STREAMS: STREAMS_PORT}
HEAP = "2g"
STARTED = '"started"'
FLINK_JOB = Path(__file__).parents[1] / "flink" / "job.py"


@dataclass(frozen=True)
class Mode:
    """What is best for an engine depends on what it does: a backlog in little time, or each window soon.

    Kafka Streams' final counts, by `suppress`, are right only while its partitions are read at one pace: in a backlog
    its stream time runs ahead with the quickest, and events of the others are dropped. There it gives updates.
    """

    ours: Mapping[str, str]
    flink_checkpoints: str
    streams_commit_ms: int
    streams_results: str


BACKLOG = Mode({"KAPPA_TRIGGER_SECONDS": "1", "KAPPA_MAX_OFFSETS_PER_TRIGGER": "400000"}, "5 s", 1000, "updates")
STEADY = Mode({"KAPPA_TRIGGER_SECONDS": "0.5", "KAPPA_MAX_OFFSETS_PER_TRIGGER": "400000"}, "1 s", 100, "final")


@dataclass(frozen=True)
class Programs:
    """What the peers need to run, built or fetched beforehand."""

    flink: Path  # a Python that has Flink
    streams: str  # a class path

    @classmethod
    def ready(cls, folder: Path, flink: Path) -> "Programs":
        """Compile and fetch. Raises UserError."""
        fetch("flink", default_jars())
        return cls(flink, build.classpath(folder / "streams"))


class AdsLab(Lab):
    """A lab with the three engines; those of one generation write topics of their own."""

    def __init__(self, home: Path, programs: Programs, mode: Mode) -> None:
        self.programs, self.mode = programs, mode
        super().__init__(home, {}, PORT)

    def move_to(self, generation: str) -> None:
        """From now on, engines of this generation."""
        self.settings = Settings(home=self.home, kafka_bootstrap=self.broker.address, generation=generation)
        self.topics = job.topic_map(generation)
        java = {"JAVA_HOME": str(find_jdk(SPARK_JAVA, "Flink")), "JVM_ARGS": f"-Xmx{HEAP}"}
        self.jobs = {
            OURS: self._job(OURS, (sys.executable, "-m", "tests.bench.yahoo.job"), (), self._environment()),
            FLINK: self._job(FLINK, (str(self.programs.flink), str(FLINK_JOB)), self._flink(), java),
            STREAMS: self._job(STREAMS, self._streams(), self._streams_options(), {}),
        }

    def _job(
        self, engine: str, program: tuple[str, ...], command: tuple[str, ...], environment: Mapping[str, str]
    ) -> Job:
        return Job(engine, command, environment, self.home / f"{self.name_of(engine)}.log", program=program)

    def name_of(self, engine: str) -> str:
        """What an engine is called in Kafka: its group or application."""
        return f"{engine}.{self.settings.generation}"

    def _environment(self) -> dict[str, str]:
        return {
            "KAPPA_HOME": str(self.home),
            "KAPPA_JARS": str(default_jars()),
            "KAPPA_KAFKA_BOOTSTRAP": self.broker.address,
            "KAPPA_GENERATION": self.settings.generation,
            "KAPPA_METRICS_PORT": str(OURS_PORT),
            "KAPPA_DRIVER_MEMORY": HEAP,
            **self.mode.ours,
        }

    def _flink(self) -> tuple[str, ...]:
        (connector,) = fetch("flink", default_jars()).glob("flink-sql-connector-kafka-*.jar")
        name = self.name_of(FLINK)
        options = ("--connector", str(connector), "--checkpoints", str(self.home / name))
        values = {"group": name, "lateness_s": self.lateness_ms // 1000, **self._kafka(FLINK)}
        settings = {
            "execution.checkpointing.interval": self.mode.flink_checkpoints,
            # Of the campaigns alone: a partition of events that is silent for a moment must not be left behind.
            "table.exec.source.idle-timeout": "0 s",
        }
        flags = [part for pair in _pairs(settings) for part in ("--set", pair)]
        return (str(Path(__file__).with_name("campaigns.sql")), *options, *flags, *_pairs(values))

    def _streams(self) -> tuple[str, ...]:
        return build.command("AdCounts", self.programs.streams, (f"-Xmx{HEAP}", "-XX:+UseParallelGC"))

    def _streams_options(self) -> tuple[str, ...]:
        name, mode = self.name_of(STREAMS), self.mode
        # Of updates none may be dropped, however unequally the partitions are read.
        grace_ms = self.lateness_ms if mode.streams_results == "final" else 3_600_000
        values = {
            "group": name,
            "state": self.home / name,
            "port": STREAMS_PORT,
            "grace_ms": grace_ms,
            "commit_ms": mode.streams_commit_ms,
            "results": mode.streams_results,
        }
        return tuple(_pairs(values | self._kafka(STREAMS)))

    def _kafka(self, engine: str) -> dict[str, str]:
        names = {"ads": self.topics[job.ADS].name, "campaigns": self.topics[job.CAMPAIGNS].name}
        return {"bootstrap": self.broker.address, "out": self.out(engine), **names}

    @property
    def lateness_ms(self) -> int:
        """How late an event may be, the same for all engines."""
        lateness = self.topics[job.ADS].lateness
        assert lateness
        return lateness.max_ms

    def out(self, engine: str) -> str:
        """The topic of an engine's counts."""
        return self.topics[job.COUNTS].name if engine == OURS else f"{self.name_of(engine)}.counts"

    def updates(self, engine: str) -> bool:
        """Whether an engine gives a window several counts, of which the last one is right."""
        return engine == STREAMS and self.mode.streams_results == "updates"

    def create_topics(self) -> None:
        """All that the engines of this generation read and write, but what Kafka Streams makes for itself."""
        counts = self.topics[job.COUNTS]
        peers = [counts.model_copy(update={"name": self.out(engine)}) for engine in (FLINK, STREAMS)]
        apply(connect(self.broker.address), [*self.topics, *peers])

    def groups(self, stage: str) -> dict[str, tuple[str, ...]]:
        """An engine's consumer groups and what they read."""
        ads, name = self.topics[job.ADS].name, self.name_of(stage)
        if stage == OURS:
            queries = {self.settings.query_of(one.name): one.inputs(self.topics) for one in job.TABLE}
            return {query: tuple(topic.name for topic in topics) for query, topics in queries.items()}
        return {name: (ads, f"{name}-counts-repartition") if stage == STREAMS else (ads,)}

    def fill_campaigns(self, ads: Ads) -> None:
        """Write the table of campaigns, with times before any event's."""
        producer, topic = make_producer(client_config(self.broker.address)), self.topics[job.CAMPAIGNS].name
        for ad, campaign in ads.campaign_of_ads().items():
            producer.produce(topic, campaign.encode(), ad.encode(), timestamp=1)
        producer.flush()

    def send(self, ads: Ads, *, paced: bool = False) -> subprocess.Popen[bytes]:
        """The load as a process; its facts stand on its output in the end."""
        values = {"bootstrap": self.broker.address, "topic": self.topics[job.ADS].name, "seed": ads.seed}
        values |= {"start-ms": ads.start_ms, "rate": ads.rate, "seconds": ads.seconds}
        options = [str(part) for name, value in values.items() for part in (f"--{name}", value)]
        command = [sys.executable, "-m", "tests.bench.yahoo.load", *options, *(["--paced"] if paced else [])]
        return subprocess.Popen(command, stdout=subprocess.PIPE)


def sent(load: subprocess.Popen[bytes], seconds: float) -> dict[str, float]:
    """The facts of a load that ends within that time."""
    output, _ = load.communicate(timeout=seconds)
    assert load.returncode == 0, "the load has failed"
    facts: dict[str, float] = orjson.loads(output)
    return facts


def _pairs(values: Mapping[str, object]) -> Sequence[str]:
    return [f"{name}={value}" for name, value in values.items()]
