"""What a job is: a declaration and a pure transform. The runtime does the rest."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pyspark.sql import DataFrame, SparkSession

from infra.contract.topics import TopicMap
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings


@dataclass(frozen=True)
class Context:
    """What a job may know when its query is built: the map, the settings, and how to read a topic as a stream."""

    spark: SparkSession
    settings: Settings
    topics: TopicMap

    def own(self) -> "Context":
        """The same for topics that are the generation's own: all of them, whatever part of others it replays."""
        return replace(self, settings=self.settings.model_copy(update={"replay": Replay()}))

    def stream(
        self, source: str, *topics: str, headers: bool = False, bounded: bool = True, seconds: float = 0
    ) -> DataFrame:
        """Kafka's rows of `topics`, committed records only: from their beginning, or what a replay takes of them.

        `bounded`: so many records a batch, as the settings say; in proportion more if it comes each `seconds` instead.

        The checkpoint knows the source by the name `source`, so others can be added beside it later.
        """
        settings, replay = self.settings, self.settings.replay
        names, seconds = replay.subscribed(topics), seconds or settings.trigger_seconds
        most = math.ceil(settings.max_offsets_per_trigger * max(1, seconds / settings.trigger_seconds))
        largest = replay.batch_records(names, most, seconds)
        rows = (
            self.spark.readStream.format("kafka")
            .name(source)
            .option("kafka.bootstrap.servers", settings.kafka_bootstrap)
            .option("subscribe", ",".join(names))
            .option("startingOffsets", replay.starting_offsets(names))
            .options(**({"maxOffsetsPerTrigger": largest} if bounded else {}))
            .option("includeHeaders", headers or bool(replay.restored))
            .options(**settings.spark())
            .option("kafka.isolation.level", "read_committed")
            # Spark asks the broker for a partition's ends, and fetches anew, each time that it has taken so many.
            .option("kafka.max.poll.records", "5000")
            # What retention took before it was read is a loss that a person must decide on.
            .option("failOnDataLoss", "true")
            .load()
        )
        return replay.part(rows, [topic for topic in self.topics if topic.name in topics])


Finish = Callable[[DataFrame], DataFrame]


@dataclass(frozen=True)
class Job:
    """A step of the chain: `build` gives its stream; `finish`, if any, is applied to each micro-batch of it.

    The last of them must have the columns of connectors.sinks.kafka. `finish` is for what changes between batches, as
    the inventory does; state lives in `build`.

    `sources` gives the topics of each stream that `build` reads, by the name under which a checkpoint knows it.
    """

    name: str
    sources: Callable[[TopicMap], Mapping[str, tuple[str, ...]]]
    build: Callable[[Context], DataFrame]
    finish: Callable[[Context], Finish] | None = None
    watermarks: str | None = None  # the topic to which event-time progress is written after each batch
