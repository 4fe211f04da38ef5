"""Flink's enrichment and statistics beside ours: the same broker, the same topics, by turns."""

import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import mean
from typing import Any

import orjson
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from infra.jars import default_jars, fetch
from infra.jdk import SPARK_JAVA, find_jdk
from ops.simulator.encode import METRICS_TOPIC
from tests.bench.chain.lab import Lab
from tests.bench.chain.latency import Latencies
from tests.bench.chain.trial import Shape, alone, fill
from tests.chaos.processes import Job

FLINK = Path(__file__).parents[1] / "flink"
# Both tell of the same windows.
WINDOWS = {"KAPPA_STATISTICS_WINDOWS": str(FLINK / "windows.yaml")}
STAGES = ("enrichment", "statistics")
ROUNDS = 2
HEAP = "4g"  # one of our jobs has 2 GB and two Python workers


class PeerLab(Lab):
    """A lab that also has `flink enrichment` and `flink statistics`; `python` is one that has Flink."""

    def __init__(self, home: Path, settings: Mapping[str, str], python: Path) -> None:
        self.python = python
        super().__init__(home, {**settings, **WINDOWS})

    def move_to(self, generation: str) -> None:
        """The same for both: other topics to write, other groups."""
        super().move_to(generation)
        environment = {"JAVA_HOME": str(find_jdk(SPARK_JAVA, "Flink")), "JVM_ARGS": f"-Xmx{HEAP}"}
        program = (str(self.python), str(FLINK / "job.py"))
        for stage in STAGES:
            log = self.home / f"flink-{stage}-{generation}.log"
            self.jobs[f"flink {stage}"] = Job(stage, self._command(stage), environment, log, program=program)

    def create_topics(self) -> None:
        """Those that Flink writes, with as many partitions as ours."""
        names = [*map(self._group, STAGES), f"{self._group('enrichment')}.late"]
        wanted = [NewTopic(name, self.topics["events"].partitions) for name in names]
        admin = connect(self.broker.address)  # without a name it would end before its answer comes
        for created in admin.create_topics(wanted).values():
            created.result(30)

    def _command(self, stage: str) -> tuple[str, ...]:
        (connector,) = fetch("flink", default_jars()).glob("flink-sql-connector-kafka-*.jar")
        group, lateness = self._group(stage), self.topics[METRICS_TOPIC].lateness
        assert lateness
        values = {
            "topic": self._source(stage),
            "out": group,
            "group": group,
            "bootstrap": self.broker.address,
            "inventory": self.topics["inventory"].name,
            "lateness_ms": lateness.max_ms,
        }
        options = ("--connector", str(connector), "--checkpoints", str(self.home / group))
        return (stage, *options, *(f"{name}={value}" for name, value in values.items()))

    def groups(self, stage: str) -> dict[str, tuple[str, ...]]:
        """A stage's consumer group and what it reads, ours or Flink's."""
        if not stage.startswith("flink "):
            return super().groups(stage)
        stage = stage.removeprefix("flink ")
        return {self._group(stage): (self._source(stage),)}

    def written(self) -> dict[str, str]:
        """What each stage's results are written to, ours and Flink's."""
        ours = {"enrichment": self.topics["events"].name, "statistics": self.topics["statistics"].name}
        return ours | {f"flink {stage}": self._group(stage) for stage in STAGES}

    def _group(self, stage: str) -> str:
        return f"flink.{stage}.{self.settings.generation}"

    def _source(self, stage: str) -> str:
        return METRICS_TOPIC if stage == "enrichment" else self.topics["events"].name


def versus(shape: Shape, rate: int, python: Path) -> dict[str, Any]:
    """The same backlog through our stages and Flink's, each alone on the machine; gives ratios of their rates."""
    found: dict[str, list[dict[str, float]]] = {name: [] for stage in STAGES for name in (stage, f"flink {stage}")}
    settings = shape.of_backlog().settings
    with tempfile.TemporaryDirectory() as folder, PeerLab(Path(folder), settings, python).up() as lab:
        events = fill(lab, shape, rate, METRICS_TOPIC)
        for number in range(ROUNDS):
            lab.move_to(f"round{number}")
            lab.start()
            lab.create_topics()
            for stage in STAGES:
                # Ours first: it fills `events`, which Flink's statistics read too.
                for name in (stage, f"flink {stage}"):
                    found[name].append(alone(lab, name, events))
    ratios = {f"{stage}_ratio": _rate(found[stage]) / _rate(found[f"flink {stage}"]) for stage in STAGES}
    return {name: round(ratio, 2) for name, ratio in ratios.items()} | {"rounds": found}


def beside(shape: Shape, rate: int, python: Path) -> dict[str, Any]:
    """How late both are under a load that leaves them time: all at once, same topics, each as quick as it can be.

    Both statistics read what our enrichment writes, so that its latency is in either's.
    """
    settings = shape.of_backlog().settings
    with tempfile.TemporaryDirectory() as folder, PeerLab(Path(folder), settings, python).up() as lab:
        lab.start()
        lab.create_topics()
        for stage in STAGES:
            lab.start(stage)
            lab.start(f"flink {stage}")
        load = lab.load(rate, shape.warm + shape.seconds, shape.machines, singles=False)
        time.sleep(shape.warm)
        written = lab.written()
        with Latencies(lab.broker.address, tuple(written.values())) as latencies:
            time.sleep(shape.seconds)
        lab.check()
        sent = orjson.loads(load.communicate(timeout=120)[0])
    found = latencies.quantiles()
    return {name: found[topic] for name, topic in written.items()} | {"load": sent}


def _rate(rounds: list[dict[str, float]]) -> float:
    return mean(one["events_per_s"] for one in rounds)
