"""The peers: how each starts a stage of the chain, and how far it has read.

Each runs with two cores, its best settings, and the same lateness. What it is spared stands in its program.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import orjson
import pyspark

from connectors.kafka.offsets import Log
from infra.contract.offsets import Offsets, Partition
from infra.jars import default_jars, fetch
from infra.jdk import SPARK_JAVA, find_jdk
from tests.bench.streams import build

STAGES = ("enrichment", "statistics")
FLINK_HOME = Path(__file__).parents[1] / "flink"
STREAMS_COMMIT_MS = "1000"  # no longer than our trigger


@dataclass(frozen=True)
class Stage:
    """What a peer has to do: read one topic, write another, which is named like the stage's consumer group."""

    name: str
    group: str
    topic: str
    bootstrap: str
    inventory: str
    lateness_ms: int
    folder: Path  # for what it keeps

    def options(self) -> dict[str, str]:
        """As the programs of all peers take them."""
        return {
            "topic": self.topic,
            "out": self.group,
            "group": self.group,
            "bootstrap": self.bootstrap,
            "inventory": self.inventory,
            "lateness_ms": str(self.lateness_ms),
        }


def arguments(options: Mapping[str, str]) -> tuple[str, ...]:
    """name=value."""
    return tuple(f"{name}={value}" for name, value in options.items())


class Peer:
    """An engine."""

    name: str

    def command(self, stage: Stage) -> tuple[str, ...]:
        """What is to be run; it prints "started" and goes on until it is killed."""
        raise NotImplementedError

    def environment(self) -> dict[str, str]:
        """Its variables."""
        return {}

    def committed(self, stage: Stage, log: Log, partitions: list[Partition]) -> Offsets:
        """How far it has read: what its consumer group has committed."""
        return log.committed(stage.group, partitions)


@dataclass(frozen=True)
class Flink(Peer):
    """Flink SQL, exactly once; `python` is one that has Flink."""

    python: Path
    name = "flink"

    def command(self, stage: Stage) -> tuple[str, ...]:
        """Its job: a file of SQL."""
        (connector,) = fetch("flink", default_jars()).glob("flink-sql-connector-kafka-*.jar")
        files = ("--connector", str(connector), "--checkpoints", str(stage.folder))
        seconds = {"lateness_s": f"{stage.lateness_ms / 1000:g}"}
        program = (str(self.python), str(FLINK_HOME / "job.py"), str(FLINK_HOME / f"{stage.name}.sql"))
        return (*program, *files, *arguments(stage.options() | seconds))

    def environment(self) -> dict[str, str]:
        """4 GB of heap: one of our jobs has 2 GB and two Python workers."""
        return {"JAVA_HOME": str(find_jdk(SPARK_JAVA, "Flink")), "JVM_ARGS": "-Xmx4g"}


@dataclass(frozen=True)
class KafkaStreams(Peer):
    """Kafka Streams with `exactly_once_v2` and our own decoder; `classes` is the class path of its programs."""

    classes: str
    name = "streams"

    @classmethod
    def built(cls, target: Path) -> "KafkaStreams":
        """Compile the programs; the decoder is in the jar beside Spark's, and needs some of Spark's own classes."""
        decoder = fetch("spark", default_jars()) / "kappa.jar"
        spark = Path(pyspark.__file__).parent / "jars" / "*"
        return cls(f"{build.classpath(target)}:{decoder}:{spark}")

    def command(self, stage: Stage) -> tuple[str, ...]:
        """Its program of that name."""
        options = arguments(stage.options() | {"state": str(stage.folder), "commit_ms": STREAMS_COMMIT_MS})
        return (*build.command(stage.name.capitalize(), self.classes, ("-Xmx2g",)), *options)


@dataclass(frozen=True)
class StockSpark(Peer):
    """Structured Streaming as it comes: `from_json`, its own windows, and its own Kafka sink, at least once."""

    name = "spark"

    def command(self, stage: Stage) -> tuple[str, ...]:
        """Its program."""
        options = stage.options() | {"checkpoint": str(stage.folder), "memory": "2g"}
        return (sys.executable, "-m", "tests.bench.spark.job", stage.name, *arguments(options))

    def environment(self) -> dict[str, str]:
        """A Java that is new enough."""
        return {"JAVA_HOME": str(find_jdk(SPARK_JAVA, "Spark"))}

    def committed(self, stage: Stage, log: Log, partitions: list[Partition]) -> Offsets:
        """By its checkpoint, as it commits nothing to Kafka: the offsets of the last micro-batch that has ended."""
        ended = max((int(file.name) for file in stage.folder.glob("commits/[0-9]*")), default=None)
        if ended is None:
            return dict.fromkeys(partitions, 0)
        source = orjson.loads((stage.folder / "offsets" / str(ended)).read_text().splitlines()[2])
        return {(topic, number): source[topic][str(number)] for topic, number in partitions}
