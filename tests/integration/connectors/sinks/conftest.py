"""A query of a test's own: its topics, rows, and what their readers see."""

import uuid
from dataclasses import dataclass, field

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import NewTopic
from pyspark.sql import DataFrame, SparkSession

from connectors.kafka.admin import connect
from connectors.sinks.kafka import SinkSettings

SCHEMA = (
    "topic string, partition int, key string, value string, timestamp_ms long, "
    "headers array<struct<key: string, value: binary>>, "
    "source_topic string, source_partition int, source_oldest_ms long, source_newest_ms long, source_delay_ms long, "
    "note string, origin string"
)


@dataclass(frozen=True)
class Scene:
    """An output topic of two partitions, and the sink's settings for one query."""

    spark: SparkSession
    bootstrap: str
    name: str
    settings: SinkSettings = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", self.of_run("run-1"))
        # The rows' times lie in 1970: with the default retention the broker deletes them under the test's hands.
        kept = {"retention.ms": "-1"}
        topics = [NewTopic(self.topic, 2, 1, config=kept), NewTopic(self.settings.progress_topic, 8, 1)]
        admin = connect(self.bootstrap)
        for creation in admin.create_topics(topics).values():
            creation.result()

    @property
    def topic(self) -> str:
        return f"{self.name}.out"

    def of_run(self, run: str, **changes) -> SinkSettings:
        return SinkSettings(self.bootstrap, self.name, run, f"{self.name}.progress", 60_000, **changes)

    def row(self, number: int, **changes) -> dict:
        """Row `number`: its time goes down as the number goes up, so that order is the sink's doing."""
        row = {
            "topic": self.topic,
            "partition": None,
            "key": f"machine-{number % 7}",
            "value": f"value-{number}",
            "timestamp_ms": 1_000_000 - number,
            "headers": [{"key": "kappa.source", "value": f"in/{number % 3}/{number}".encode()}],
            "source_topic": "in",
            "source_partition": number % 3,
            "source_oldest_ms": 4_000 + number,
            "source_newest_ms": 5_000 + number,
            "source_delay_ms": number * 10 - 5 if number < 30 else None,
            "note": "fifth" if number % 5 == 0 else None,
            "origin": f"site-{number % 2}" if number < 50 else None,
        }
        return row | changes

    def frame(self, rows: list[dict], tasks: int = 3) -> DataFrame:
        return self.spark.createDataFrame(self.spark.sparkContext.parallelize(rows, tasks), SCHEMA)

    def read(self, isolation: str = "read_committed") -> list[Message]:
        """What a reader of that isolation level sees by now, partition by partition in order of offset."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": f"reader-{uuid.uuid4()}",
                "isolation.level": isolation,
                "enable.partition.eof": True,
            }
        )
        consumer.assign([TopicPartition(self.topic, number, OFFSET_BEGINNING) for number in range(2)])
        messages, ended = [], set()
        while len(ended) < 2:
            message = consumer.poll(30)
            assert message is not None, "no answer from the broker"
            if message.error() is None:
                messages.append(message)
            else:
                assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                ended.add(message.partition())
        consumer.close()
        return sorted(messages, key=lambda message: (message.partition(), message.offset()))

    def values(self, isolation: str = "read_committed") -> list[str]:
        """The values that such a reader sees, sorted."""
        return sorted(message.value().decode() for message in self.read(isolation))


@pytest.fixture
def scene(servers, spark) -> Scene:
    return Scene(spark, servers.bootstrap, f"sink-{uuid.uuid4().hex[:8]}")
