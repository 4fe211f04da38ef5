"""What part of the log a generation's first job reads, and how fast."""

import json
from collections.abc import Sequence
from functools import reduce
from operator import or_

from pydantic import BaseModel, ConfigDict
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from infra.contract.offsets import NestedOffsets, Offsets, StoredOffsets, to_nested
from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Topic
from infra.errors import UserError
from jobs.runtime.condition import Condition, parse

# Where a record stood before it was restored from the archive.
OFFSET_HEADER = "kappa.offset"
# A format that had no backlog when the replay was planned still gets this part of a batch.
LEAST_SHARE = 0.02
SHOWN = 200  # characters of a condition that is refused


class Replay(BaseModel):
    """Offsets from `start` on (empty: all), and before `end` (empty: without end)."""

    model_config = ConfigDict(frozen=True)

    start: StoredOffsets = {}
    end: StoredOffsets = {}
    backlog: dict[str, int] = {}  # records from the start to the end, or to what was the end when it was planned
    where: str | None = None  # a condition (condition.py) on the record; watermarks always pass
    max_rate: int | None = None  # records a second
    restored: dict[str, str] = {}  # topics filled from the archive -> those whose records they hold

    def subscribed(self, topics: Sequence[str]) -> list[str]:
        """Where the records of these topics are to be read."""
        holders = {original: name for name, original in self.restored.items()}
        return [holders.get(topic, topic) for topic in topics]

    def original(self, offsets: Offsets) -> Offsets:
        """These offsets by the names of the original topics."""
        return {(self.restored.get(topic, topic), number): offset for (topic, number), offset in offsets.items()}

    def as_was(self, rows: DataFrame) -> DataFrame:
        """Kafka's rows of restored topics where they stood at first: `topic`, `offset` and `headers`."""
        if not self.restored:
            return rows
        names = F.create_map(*(F.lit(name) for pair in self.restored.items() for name in pair))
        stood = F.filter("headers", lambda header: header["key"] == OFFSET_HEADER)
        return rows.withColumns(
            {
                "topic": F.element_at(names, F.col("topic")),
                "offset": F.element_at(stood, 1)["value"].cast("string").cast("long"),
                "headers": F.filter("headers", lambda header: header["key"] != OFFSET_HEADER),
            }
        )

    def starting_offsets(self, topics: Sequence[str]) -> str:
        """Spark's option for a source of these topics."""
        if not self.start:
            return "earliest"
        start = to_nested(self.start)
        return json.dumps({topic: start[topic] for topic in topics})

    def batch_records(self, topics: Sequence[str], largest: int, trigger_seconds: float) -> int:
        """How many records of these topics a batch may hold; `largest` bounds the memory of one.

        A source's part is its part of the backlog, so that all are read in step: event time goes with the slowest, and
        what is read too early of the others waits in the state.
        """
        allowed = min(largest, self.max_rate * trigger_seconds) if self.max_rate else largest
        total = sum(self.backlog.values())
        share = sum(self.backlog.get(topic, 0) for topic in topics) / total if total else 1.0
        return max(1, int(allowed * max(share, LEAST_SHARE)))

    def part(self, rows: DataFrame, topics: Sequence[Topic]) -> DataFrame:
        """Kafka's rows of these topics without what comes after the end, or doesn't meet the condition."""
        if self.end:
            end, names = to_nested(self.end), self.subscribed([topic.name for topic in topics])
            rows = rows.where(_is_before({name: end[name] for name in names}))
        rows = self.as_was(rows)
        return rows.transform(matching, topics, self.where) if self.where else rows


def _is_before(end: NestedOffsets) -> Column:
    bounds = [
        (F.col("topic") == topic) & (F.col("partition") == partition) & (F.col("offset") < offset)
        for topic, partitions in end.items()
        for partition, offset in partitions.items()
    ]
    return reduce(or_, bounds)


def matching(rows: DataFrame, topics: Sequence[Topic], where: str) -> DataFrame:
    """Kafka's rows of a topic whose record meets a condition, its watermarks, and what is for many machines.

    Raises UserError if the condition can't be used.
    """
    meets, schema = check_condition(where, topics)
    record = F.from_json(F.col("value").cast("string"), schema)
    always = F.col("key").isNull() | F.col("record.machine").contains("*")  # a watermark has no key
    return rows.withColumn("record", record).where(always | meets(F.col("record"))).select(*rows.columns)


def check_condition(where: str, topics: Sequence[Topic]) -> tuple[Condition, StructType]:
    """A condition on the records of a job's input, and their schema. Raises UserError if it can't be used."""
    try:
        schema = SCHEMAS.get(topics[0].schema_name or "")
        if schema is None or len(topics) > 1:
            raise UserError("collectors' records have no common fields; use --job statistics, it reads `events`")
        return parse(where, schema), schema
    except UserError as error:
        raise UserError(f"--where {where[:SHOWN]!r}: {error}") from None
