"""The chain's Spark jobs in this process, on a broker of their own, fed step by step by a simulated cloud."""

import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import yaml
from pyspark.sql import SparkSession

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from connectors.kafka.producer import CollectorProducer
from infra.contract.topics import DEFAULT_MAP, TopicMap, load_topics
from jobs.runtime.gate import Gate
from jobs.runtime.job import Context
from jobs.runtime.query import QueryRun
from jobs.runtime.runner import _drain
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.launcher import plan_job
from ops.replay.registry import Registry
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from ops.simulator.truth import Truth
from tests.waiting import until

SECONDS = 240  # of the simulation, if nothing else is said
PATIENCE = 600  # on a busy machine
STARTING = 40
RUNNING = ("enrichment", "statistics", "detector", "incidents", "archive.log", "archive.novelties")
FAULTS = (
    "late:vm-05@+30s/20s",
    "malformed:vm-03@+30s/20s",
    "log_burst:vm-04@+60s/30s",
    "cpu_hog:vm-02@+90s/40s",
    "silence:vm-06@+110s/60s",
)


class SmallChain:
    """All jobs but the indexer; what isn't fed yet is held back. The names of its machines begin with `prefix`."""

    def __init__(
        self, home: Path, bootstrap: str, spark: SparkSession, prefix: str = "", seconds: int = SECONDS
    ) -> None:
        self.spark, self.home, self.prefix, self.seconds = spark, home, prefix, seconds
        self.running = RUNNING
        self.settings = Settings(
            home=home,
            kafka_bootstrap=bootstrap,
            topics_file=home / "topics.yaml",
            trigger_seconds=0.5,
            archive_trigger_seconds=5,
            max_offsets_per_trigger=500,
        )
        self.log = Log(bootstrap)
        self._moved = threading.Condition()
        self._limit = self._reached = 0
        self._sender: threading.Thread | None = None
        self._runs: dict[str, QueryRun] = {}
        self._registry = Registry()

    def of_generation(self, name: str) -> "SmallChain":
        """The same of a planned generation, beside this one."""
        other = SmallChain(self.home, self.settings.kafka_bootstrap, self.spark)
        other.settings = self.settings.model_copy(update={"generation": name})
        other._registry = Registry.read(self.settings.kafka_bootstrap)
        return other

    @property
    def topics(self) -> TopicMap:
        return self._registry.topics(self.settings.generation, load_topics(self.settings.topics_file))

    @property
    def truth(self) -> Path:
        return self.home / "truth"

    def create_topics(self) -> None:
        """Those of the formats that the cloud sends, with its clock: minutes pass in seconds, and a mirror keeps it."""
        declared = yaml.safe_load(DEFAULT_MAP.read_text())
        for place in (declared["telemetry"], declared["topics"]["inventory"], declared["topics"]["notifications"]):
            place["timestamp"] = "CreateTime"
        declared["defaults"]["partitions"] = 2
        sent = {"telemetry.otlp.metrics", "telemetry.otlp.logs", "detector.control"}
        declared["topics"] = {
            name: topic for name, topic in declared["topics"].items() if "format" not in topic or name in sent
        }
        self.settings.topics_file.write_text(yaml.safe_dump(declared, sort_keys=False))
        admin.apply(admin.connect(self.settings.kafka_bootstrap), self.topics)

    def feed_until(self, second: int) -> None:
        """Returns once what is before this second of the simulation is on the broker."""
        if self._sender is None:
            self._sender = self._begin_feed()
        with self._moved:
            self._limit = second * 1000
            self._moved.notify_all()
            if second < self.seconds:
                assert self._moved.wait_for(lambda: self._reached >= self._limit, PATIENCE)
        if second >= self.seconds:
            self._sender.join(PATIENCE)
            assert not self._sender.is_alive()
        self._producer.flush()

    def _begin_feed(self) -> threading.Thread:
        start = (int(datetime.now(UTC).timestamp()) - self.seconds) * SECOND
        faults = tuple(parse(fault.replace(":", f":{self.prefix}")) for fault in FAULTS)
        cloud = {"start_unix_nano": start, "duration": self.seconds * SECOND, "machines": 8, "faults": faults}
        simulation = Simulation(Cloud(**cloud, name_prefix=self.prefix))
        self._producer = CollectorProducer(self.settings.kafka_bootstrap, simulation.topics())

        def report(progress: feed.Progress) -> None:
            with self._moved:
                self._reached = progress.reached_ms - start // 1_000_000
                self._moved.notify_all()
                self._moved.wait_for(lambda: self._reached < self._limit or self._limit >= self.seconds * 1000)

        def send() -> None:
            with Truth(self.truth, simulation) as truth:
                feed.run(simulation, self._producer, truth, live=False, report=report)

        thread = threading.Thread(target=send, daemon=True)
        thread.start()
        return thread

    def start(self) -> None:
        """Start the queries from their checkpoints."""
        self._gate, self._queries = Gate(), {}
        for job in dict.fromkeys(name.partition(".")[0] for name in self.running):
            planned = plan_job(JOBS[job], self.settings, self._registry)
            context = Context(self.spark, planned.settings, self.topics, planned.own)
            for query in JOBS[job].implementation().queries(JOBS[job], context):
                if query.name in self.running:
                    self._runs[query.name] = QueryRun(query, context, self._gate)
                    self._begin(query.name)

    def start_and_move(self) -> None:
        """Feed and start it until all jobs are in the midst of their work."""
        self.feed_until(100)
        self.start()
        self.wait_for(lambda: any(self.committed("incidents").values()), "incidents have read nothing")
        moving = self.committed("detector")
        self.feed_until(150)
        self.wait_for(lambda: self.committed("detector") != moving, "the chain doesn't move")

    def _begin(self, name: str) -> None:
        """One after the other: each starts a Python worker, which must come within seconds."""
        self._runs[name].take_over(yields=False)
        query = self._queries[name] = self._runs[name].start()
        with suppress(TimeoutError):
            until(lambda: query.lastProgress or not query.isActive, STARTING, "it has nothing to do")

    def _tend(self) -> None:
        """Start again what has failed, as an orchestrator would: on a busy machine workers come too late."""
        for name, query in self._queries.items():
            if not query.isActive:
                self._begin(name)

    def wait_for(self, condition, otherwise: str) -> None:
        """Returns once it holds, while the queries run."""
        until(lambda: self._tend() or condition(), PATIENCE, otherwise)

    def stop(self) -> None:
        """Once everything is read: let the batches that run end, then stop."""
        seen = [0]

        def is_caught_up() -> bool:
            seen.append(sum(self._ends().values()))
            return not self.behind() and seen[-1] == seen[-2]

        patience = max(PATIENCE, self.seconds)  # nobody asks it to be faster than the clock
        until(lambda: self._tend() or is_caught_up(), patience, "the chain doesn't catch up")
        _drain("chain", self._queries, self._gate, self.settings)

    def _ends(self) -> dict:
        return self.log.ends({topic for topics in self._read().values() for topic in topics})

    def _read(self) -> dict[str, list[str]]:
        """The topics that each query reads."""
        return {
            query: [topic.name for topic in topics]
            for name in dict.fromkeys(name.partition(".")[0] for name in self.running)
            for query, topics in JOBS[name].reads_of(self.topics).items()
            if query in self.running
        }

    def behind(self) -> dict[str, int]:
        """The queries that have not read everything."""
        lag = {}
        for query, topics in self._read().items():
            ends = self.log.ends(topics)
            at = self.committed(query, topics)
            lag[query] = sum(max(0, end - at[place]) for place, end in ends.items())
        return {query: count for query, count in lag.items() if count}

    def committed(self, query: str, topics: list[str] | None = None) -> dict:
        """The offsets of a query's group."""
        places = self.log.partitions(topics or self._read()[query])
        return self.log.committed(self.settings.query_of(query), places)
