"""The inventory as a lookup table: the facts of each machine (type, site, hypervisor, ...) with their history.

The `inventory` topic is compacted by machine and `valid_from`, so every change of a machine's facts stays in it. Of the
facts that had reached the broker before an event did, the one that began last before the event's time applies, until
its own end; of two that began together, the one that came later. All these times are in the log, so a replay finds the
same facts. A `Fact` is a dict of the facts and when they hold, in ns since the epoch: `valid_from`, `valid_to` (None:
no end) and `known_from` (when the broker received them).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import orjson
import pyarrow as pa
import structlog
from confluent_kafka import OFFSET_BEGINNING, KafkaError, KafkaException, Message, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from connectors.kafka.client import READER, make_admin, make_consumer
from connectors.kafka.offsets import latest_offsets
from connectors.kafka.security import client_config
from infra.contract.inventory import DEPENDENCIES_CHARACTERS, DEPENDS_ON, FACTS, MOST_DEPENDENCIES
from infra.contract.offsets import Offsets

log = structlog.get_logger()

_HISTORY = pa.struct(
    [
        ("valid_from", pa.int64()),
        ("valid_to", pa.int64()),
        ("known_from", pa.int64()),
        *((name, pa.string()) for name in FACTS),
        (DEPENDS_ON, pa.list_(pa.string())),
    ]
)
SCHEMA = pa.schema([("machine", pa.string()), ("history", pa.list_(_HISTORY))])

Fact = dict[str, Any]
FACT_CHARACTERS = 1_000  # each record of the machine has its facts


class InventoryFollower:
    """Keeps the facts of all machines in memory; each `catch_up` reads the topic on to its present end."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.facts: dict[str, list[Fact]] = defaultdict(list)  # of each machine, in the order of their coming
        self._consumer = make_consumer(client_config(bootstrap), READER)
        found = self._consumer.list_topics(topic, 30).topics[topic]
        if found.error and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            raise KafkaException(found.error)  # else it would look like an empty inventory
        partitions = found.partitions
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in partitions])
        self._partitions = [(topic, number) for number in partitions]
        # Asked for by the consumer, it would wait behind its own fetch, a quarter of a second on average.
        self._admin = make_admin(client_config(bootstrap))

    def catch_up(self) -> bool:
        """Read up to the present end of the topic; returns whether there were new records."""
        ends = latest_offsets(self._admin, self._partitions)
        changed = False
        while self._is_behind(ends):
            message = self._consumer.poll(1)
            if message is None:
                continue
            if message.error():
                raise KafkaException(message.error())
            self._take(message)
            changed = True
        return changed

    def close(self) -> None:
        """Close the connection to the broker."""
        self._consumer.close()

    def _is_behind(self, ends: Offsets) -> bool:
        """Whether there are records to read: the consumer's position also passes offsets that compaction removed."""
        reached = self._consumer.position([TopicPartition(*partition) for partition in ends])
        offsets = ((one.offset, ends[one.topic, one.partition]) for one in reached)
        return any(offset < end for offset, end in offsets if end)

    def _take(self, message: Message) -> None:
        try:
            machine, fact = parse_fact(message.value(), message.timestamp()[1])
        except (ValueError, KeyError, TypeError, OverflowError) as error:
            log.warning("inventory record skipped", offset=message.offset(), error=str(error))
            return
        if not is_repeated(fact, self.facts[machine]):
            self.facts[machine].append(fact)


def is_repeated(fact: Fact, known: Sequence[Fact]) -> bool:
    """Whether a fact says of its beginning what the newest of the known ones of that beginning says."""
    before = next((one for one in reversed(known) if one["valid_from"] == fact["valid_from"]), None)
    return before is not None and {**fact, "known_from": before["known_from"]} == before


def read_facts(bootstrap: str, topic: str) -> dict[str, list[Fact]]:
    """Read the whole topic: of each machine its facts, in the order of their coming."""
    follower = InventoryFollower(bootstrap, topic)
    try:
        follower.catch_up()
        return follower.facts
    finally:
        follower.close()


class InventoryTable:
    """The inventory as a cached DataFrame, which is rebuilt only when the topic has new records."""

    def __init__(self, spark: SparkSession, bootstrap: str, topic: str) -> None:
        self.spark = spark
        self._follower = InventoryFollower(bootstrap, topic)
        self._frame: DataFrame | None = None

    def frame(self) -> DataFrame:
        """One row a machine (columns: see SCHEMA), with every record that was in the topic before this call."""
        changed = self._follower.catch_up()
        if self._frame is None or changed:
            self._rebuild()
        assert self._frame is not None
        return self._frame

    def _rebuild(self) -> None:
        if self._frame is not None:
            self._frame.unpersist()
        table = pa.Table.from_pylist(rows(self._follower.facts), schema=SCHEMA)
        self._frame = self.spark.createDataFrame(table).persist()


def rows(facts: Mapping[str, Sequence[Fact]]) -> list[dict[str, Any]]:
    """The facts of each machine, in the order of their coming, as rows of SCHEMA: what applies stands first."""
    return [{"machine": machine, "history": newest_first(known)} for machine, known in facts.items()]


def newest_first(facts: Sequence[Fact]) -> list[Fact]:
    """One machine's facts, that which began last first; of those that began together the one that came last."""
    return sorted(reversed(facts), key=lambda fact: -fact["valid_from"])  # noqa: C414


def parse_fact(value: bytes | None, received_ms: int) -> tuple[str, Fact]:
    """The (machine, fact) of a record of `inventory`; `received_ms` is its Kafka timestamp.

    Raises ValueError, KeyError or TypeError if `value` is no such record.
    """
    record = orjson.loads(value or b"")
    if not isinstance(record, dict):
        raise TypeError("not an object")
    fact: Fact = {name: _text(name, record.get(name)) for name in FACTS}
    fact[DEPENDS_ON] = _names(record.get(DEPENDS_ON))
    fact["valid_from"] = _time(record.get("valid_from_unix_nano") or 0)
    valid_to = record.get("valid_to_unix_nano")
    fact["valid_to"] = None if valid_to is None else _time(valid_to)
    fact["known_from"] = received_ms * 1_000_000
    return str(record["machine"]), fact


def _text(name: str, value: Any) -> str | None:
    """A fact; None if nothing is said, as by an empty text: machines without a workload are no workload together."""
    if value is None or (isinstance(value, str) and len(value) <= FACT_CHARACTERS):
        return value or None
    raise ValueError(f"{name}: a text of at most {FACT_CHARACTERS} characters is needed")


def _names(value: Any) -> list[str] | None:
    """What a machine depends on; None if nothing is said."""
    if value is None or value == []:
        return None
    is_list = isinstance(value, list) and all(isinstance(name, str) and name for name in value)
    if is_list and len(value) <= MOST_DEPENDENCIES and sum(map(len, value)) <= DEPENDENCIES_CHARACTERS:
        return list(value)
    most = f"at most {MOST_DEPENDENCIES} names of {DEPENDENCIES_CHARACTERS} characters in all"
    raise ValueError(f"{DEPENDS_ON}: a list of {most} is needed")


def _time(value: Any) -> int:
    if abs(time := int(value)) < 2**63:
        return time
    raise ValueError(f"{time}: no time in nanoseconds")
