"""Maps that differ from the shipped one."""

from typing import Any

from infra.contract.topics import Topic, TopicMap


def with_changes(topics: TopicMap, partitions: int | None = None, timestamp: str | None = None) -> TopicMap:
    """The map with other partition counts (telemetry, co-partitioned topics) or another clock (for the broker's)."""

    def changes(topic: Topic) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        if partitions and (topic.format or topic.shards):
            changed["partitions"] = partitions
        if timestamp and topic.timestamp == "LogAppendTime":
            changed["timestamp"] = timestamp
        return changed

    changed = {key: topic.model_copy(update=changes(topic)) for key, topic in topics.topics.items()}
    return TopicMap(changed, topics.own)
