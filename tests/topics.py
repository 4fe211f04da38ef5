"""Maps that differ from the shipped one."""

from typing import Any

from infra.contract.topics import Topic, TopicMap, parse_duration


def with_changes(
    topics: TopicMap,
    partitions: int | None = None,
    timestamp: str | None = None,
    retention: str | None = None,
    max_message_bytes: int | None = None,
) -> TopicMap:
    """The map with other partitions (of telemetry, co-partitioned topics), clock (for the broker's) or limits."""

    def changes(topic: Topic) -> dict[str, Any]:
        changed: dict[str, Any] = {}
        if partitions and (topic.format or topic.shards):
            changed["partitions"] = partitions
        if timestamp and topic.timestamp == "LogAppendTime":
            changed["timestamp"] = timestamp
        if retention:
            changed["retention"] = parse_duration(retention)
        if max_message_bytes:
            changed["max_message_bytes"] = max_message_bytes
        return changed

    changed = {key: topic.model_copy(update=changes(topic)) for key, topic in topics.topics.items()}
    return TopicMap(changed, topics.own)
