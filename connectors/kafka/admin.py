"""Compare the map with a broker, create what is missing, and change of what exists only what loses nothing."""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
    TopicMetadata,
)

from connectors.kafka.access import reach
from connectors.kafka.offsets import latest_offsets
from infra.contract.topics import Topic
from infra.errors import UserError

TIMEOUT_SECONDS = 15.0
LEADER_TIMEOUT_SECONDS = 60.0  # a broker on a busy machine takes seconds to open the logs of a hundred partitions
GROWING = ("retention.ms", "min.compaction.lag.ms", "max.message.bytes")  # a larger value loses nothing


@dataclass(frozen=True)
class TopicState:
    """How one topic of the map stands on the broker; `differences` maps a setting to (declared, actual)."""

    name: str
    state: Literal["created", "applied", "changed", "same", "differs", "missing"]
    differences: dict[str, tuple[str, str]] = field(default_factory=dict)


def connect(bootstrap: str) -> AdminClient:
    """An admin client that has reached its broker. Raises UserError saying why none lets us in."""
    return reach(bootstrap)


@dataclass(frozen=True)
class BrokerLimits:
    """What the brokers allow: each topic's settings and number of replicas by its name, and one broker's settings."""

    topics: Mapping[str, Mapping[str, str]]
    replicas: Mapping[str, int]
    broker: Mapping[str, str]


def read_limits(admin: AdminClient, names: Iterable[str]) -> BrokerLimits:
    """The limits of the topics `names`, which exist. Raises KafkaException, also where the right to ask is missing."""
    names = list(names)
    found = admin.list_topics(timeout=TIMEOUT_SECONDS)
    replicas = {name: min(len(one.replicas) for one in found.topics[name].partitions.values()) for name in names}
    resource = ConfigResource(ResourceType.BROKER, str(min(found.brokers)))
    (answer,) = admin.describe_configs([resource]).values()
    broker = {key: entry.value for key, entry in answer.result(TIMEOUT_SECONDS).items()}
    return BrokerLimits(_configs(admin, names), replicas, broker)


def compare(admin: AdminClient, topics: Iterable[Topic]) -> list[TopicState]:
    """The state of each topic, in the order given."""
    topics = list(topics)
    present = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    configs = _configs(admin, [topic.name for topic in topics if topic.name in present])
    return [_state(topic, present.get(topic.name), configs.get(topic.name, {})) for topic in topics]


def apply(admin: AdminClient, topics: Iterable[Topic]) -> list[TopicState]:
    """Create the missing topics, with the broker's default replication; returns the state of all."""
    topics = list(topics)
    states = compare(admin, topics)
    missing = [topic for topic, state in zip(topics, states, strict=True) if state.state == "missing"]
    _create(admin, missing)
    return [TopicState(state.name, "created") if state.state == "missing" else state for state in states]


def widen(admin: AdminClient, states: Iterable[TopicState]) -> list[TopicState]:
    """Apply of the differences those that lose nothing: a longer retention, larger batches of records.

    Returns the states after that. Without the right to change settings, a topic differs as before.
    """
    found = []
    for state in states:
        changes = {
            name: declared
            for name, (declared, actual) in state.differences.items()
            if _is_wider(name, declared, actual)
        }
        try:
            set_config(admin, {state.name: changes} if changes else {})
        except KafkaException:
            changes = {}
        left = {name: both for name, both in state.differences.items() if name not in changes}
        found.append(TopicState(state.name, "differs" if left else "changed", left) if changes else state)
    return found


def _is_wider(setting: str, declared: str, actual: str) -> bool:
    if setting not in GROWING:
        return False
    unlimited = setting == "retention.ms" and int(actual) < 0
    return not unlimited and int(declared) > int(actual)


def set_config(admin: AdminClient, changes: Mapping[str, Mapping[str, str]]) -> None:
    """Set these settings of topics, by name; others stay. Returns once the broker shows them."""
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            topic,
            incremental_configs=[
                ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
                for name, value in settings.items()
            ],
        )
        for topic, settings in changes.items()
    ]
    for answer in admin.incremental_alter_configs(resources).values() if resources else ():
        answer.result(TIMEOUT_SECONDS)

    def late() -> list[str]:
        shown = _configs(admin, list(changes))
        return [topic for topic, settings in changes.items() if not settings.items() <= shown[topic].items()]

    _await(late, "its settings changed, but the broker shows the old")


def delete(admin: AdminClient, names: Iterable[str]) -> None:
    """Delete those of these topics that are there."""
    present = admin.list_topics(timeout=TIMEOUT_SECONDS).topics
    doomed = [name for name in names if name in present]
    for answer in admin.delete_topics(doomed, operation_timeout=TIMEOUT_SECONDS).values() if doomed else ():
        answer.result()


def _state(topic: Topic, present: TopicMetadata | None, config: dict[str, str]) -> TopicState:
    if present is None:
        return TopicState(topic.name, "missing")
    declared = {"partitions": str(topic.partitions), **topic.config}
    actual = {"partitions": str(len(present.partitions)), **config}
    differences = {key: (value, actual[key]) for key, value in declared.items() if value != actual[key]}
    return TopicState(topic.name, "differs" if differences else "same", differences)


def _configs(admin: AdminClient, names: list[str]) -> dict[str, dict[str, str]]:
    if not names:
        return {}
    answers = admin.describe_configs([ConfigResource(ResourceType.TOPIC, name) for name in names])
    return {
        resource.name: {key: entry.value for key, entry in answer.result(TIMEOUT_SECONDS).items()}
        for resource, answer in answers.items()
    }


def _create(admin: AdminClient, topics: list[Topic]) -> None:
    if not topics:
        return
    wanted = [NewTopic(topic.name, num_partitions=topic.partitions, config=topic.config) for topic in topics]
    for answer in admin.create_topics(wanted, operation_timeout=TIMEOUT_SECONDS).values():
        try:
            answer.result()
        except KafkaException as error:
            # Another process applied the same map meanwhile.
            if error.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
                raise
    names = {topic.name for topic in topics}
    _await(
        lambda: names - admin.list_topics(timeout=TIMEOUT_SECONDS).topics.keys(),
        "was created, but the broker does not show it",
    )
    _await_leaders(admin, topics)


def _await(late: Callable[[], Collection[str]], what: str) -> None:
    """Return once no topic is `late`: a broker learns of what the controller has done a moment after it.

    Raises UserError naming a topic and `what` is wrong with it, if that takes too long.
    """
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while topics := late():
        if time.monotonic() > deadline:
            raise UserError(f"topic {min(topics)!r}: {what}; is it healthy?")
        time.sleep(0.1)


def _await_leaders(admin: AdminClient, topics: list[Topic]) -> None:
    """Returns once every partition is served by its leader, which is seconds later on a busy broker.

    Before that, a producer loses its first record: the leader refuses the batch of sequence 0, takes that of
    sequence 1, and refuses the first one's second attempt as older; librdkafka then reports it as delivered.
    """
    partitions = [(topic.name, number) for topic in topics for number in range(topic.partitions)]
    deadline = time.monotonic() + LEADER_TIMEOUT_SECONDS
    while True:
        try:
            latest_offsets(admin, partitions, TIMEOUT_SECONDS)
            return
        except KafkaException as error:
            if time.monotonic() > deadline:
                raise UserError(f"new topics: a partition has no leader ({error}); are the brokers healthy?") from error
        time.sleep(0.1)
