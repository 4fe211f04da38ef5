"""The rights in Kafka that a job needs, by its row of the table and the map of topics, and whether it has them.

A job's queries name their consumer groups and transactional ids, and each begins with `kappa.<generation>.<job>`: one
right by that prefix covers them. Spark's own groups need none: its sources assign partitions to themselves.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AclOperation, AdminClient  # type: ignore[attr-defined]

from connectors.kafka.client import READER
from infra.contract.jobs import PROGRESS_TOPIC, Job
from infra.contract.topics import LIVE, TopicMap
from jobs.runtime.settings import query_name

Kind = Literal["topic", "group", "transactional-id", "cluster"]
CLUSTER = "kafka-cluster"  # Kafka's own name of it
GENERATIONS = "generations"  # the topic with the plans of generations
SECONDS = 15.0

READ, WRITE, DESCRIBE, DESCRIBE_CONFIGS = "Read", "Write", "Describe", "DescribeConfigs"
CREATE, DELETE, ALTER_CONFIGS = "Create", "Delete", "AlterConfigs"


@dataclass(frozen=True, order=True)
class Right:
    """What a principal may do, as Kafka's tools call it; with `is_prefix` to all names that begin with `name`."""

    kind: Kind
    name: str
    operation: str
    is_prefix: bool = False

    def __str__(self) -> str:
        return f"{self.operation} on {self.kind} {self.name}{'*' if self.is_prefix else ''}"


def rights_of(job: Job, topics: TopicMap, generation: str) -> frozenset[Right]:
    """What a job needs in a generation, whose topics these are."""
    return frozenset(_rights(job, topics, generation))


def _rights(job: Job, topics: TopicMap, generation: str) -> Iterator[Right]:
    own = query_name(generation, job.name)
    reads = {topic.name for topic in (*job.inputs(topics), *(topics[key] for key in job.beside))}
    writes = {topics[key].name for key in (*job.writes, *filter(None, [job.decides]))}
    if job.uses_spark:
        reads.add(topics[PROGRESS_TOPIC].name)
    yield from (Right("topic", name, READ) for name in reads)
    yield from (Right("topic", name, WRITE) for name in writes)
    yield Right("group", own, READ, is_prefix=True)
    yield Right("transactional-id", own, WRITE, is_prefix=True)
    if generation != LIVE:
        yield Right("topic", topics[GENERATIONS].name, READ)
    if job.uses_spark or job.beside or generation != LIVE:
        yield Right("group", READER, READ)
    # For the check of limits (preflight.py).
    yield from (Right("topic", name, DESCRIBE_CONFIGS) for name in reads | writes)
    yield Right("cluster", CLUSTER, DESCRIBE_CONFIGS)


def first_missing(admin: AdminClient, rights: Iterable[Right]) -> Right | None:
    """The first right to read or write that this client lacks, as far as the broker can be asked; None for none.

    It can't be asked for transactional ids. A broker that checks no rights says that every one is there.
    """
    wanted = sorted(right for right in rights if right.operation in (READ, WRITE))
    allowed = {
        **_of_topics(admin, {right.name for right in wanted if right.kind == "topic"}),
        **_of_groups(admin, {right.name for right in wanted if right.kind == "group"}),
    }
    for right in wanted:
        operations = allowed.get((right.kind, right.name))
        if operations is not None and right.operation not in operations:
            return right
    return None


Allowed = dict[tuple[Kind, str], set[str] | None]  # None: the broker doesn't say


def _of_topics(admin: AdminClient, names: set[str]) -> Allowed:
    if not names:
        return {}
    wanted, denied = TopicCollection(sorted(names)), KafkaError.TOPIC_AUTHORIZATION_FAILED
    found = admin.describe_topics(wanted, include_authorized_operations=True, request_timeout=SECONDS)
    return {("topic", name): _operations(answer, denied) for name, answer in found.items()}


def _of_groups(admin: AdminClient, names: set[str]) -> Allowed:
    if not names:
        return {}
    denied = KafkaError.GROUP_AUTHORIZATION_FAILED
    found = admin.describe_consumer_groups(sorted(names), include_authorized_operations=True, request_timeout=SECONDS)
    return {("group", name): _operations(answer, denied) for name, answer in found.items()}


def _operations(answer: object, denied: int) -> set[str] | None:
    try:
        operations = answer.result().authorized_operations  # type: ignore[attr-defined]
    except KafkaException as error:
        return set() if error.args[0].code() == denied else None
    return None if operations is None else {operation_name(one) for one in operations}


def operation_name(operation: AclOperation) -> str:
    """The name of an operation as Kafka's tools and Strimzi write it, such as DescribeConfigs."""
    return "".join(part.capitalize() for part in operation.name.split("_"))
