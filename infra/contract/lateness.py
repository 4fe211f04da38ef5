"""How late an event may be: by the map of topics, and by what enrichment has decided from the log.

An event is late if it is older than the Kafka timestamp of its record by more than its topic's lateness. Where the map
gives a `share`, this is as short as the log has shown to be enough. Each decision is a record of the topic `lateness`
that says from which Kafka time on it holds, some time ahead of what anyone has read: so all generations and each
replay judge each record alike.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from infra.contract.topics import Lateness, TopicMap

TOPIC = "lateness"  # its key in the map


class Decision(NamedTuple):
    """From a Kafka time on, in ms since the Unix epoch, events may be so many ms late."""

    from_ms: int
    lateness_ms: int

    def key(self) -> bytes:
        """The key of its record: of two decisions for one time, the later one holds."""
        return str(self.from_ms).encode()

    def value(self) -> bytes:
        """The value of its record."""
        return orjson.dumps({"from_unix_milli": self.from_ms, "lateness_milli": self.lateness_ms})

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Decision | None":
        """The decision that a parsed record is; None if it is none."""
        found = record.get("from_unix_milli"), record.get("lateness_milli")
        if not all(type(number) is int and number >= 0 for number in found):
            return None
        return cls(*found)  # type: ignore[arg-type]


class AllowedLateness:
    """By how much events of each topic may be older than the Kafka timestamps of their records."""

    def __init__(self, by_topic: Mapping[str, Lateness], decisions: Iterable[Decision] = ()) -> None:
        """`decisions` in the order of the log."""
        self.by_topic = dict(by_topic)
        self.learned = {topic: one.share for topic, one in self.by_topic.items() if one.share is not None}
        self.decisions: tuple[Decision, ...] = ()
        self.decide(decisions)

    @classmethod
    def of(cls, topics: TopicMap, decisions: Iterable[Decision] = ()) -> "AllowedLateness":
        """What the telemetry topics of a map declare, and what is decided."""
        return cls({topic.name: topic.lateness for topic in topics.telemetry if topic.lateness}, decisions)

    @property
    def most_ms(self) -> int:
        """The longest that is declared where it is learned; 0 if it is nowhere."""
        return max((self.by_topic[topic].max_ms for topic in self.learned), default=0)

    @property
    def latest_ms(self) -> int:
        """What has been decided last, or the longest that is declared."""
        return self.decisions[-1].lateness_ms if self.decisions else self.most_ms

    def decide(self, decisions: Iterable[Decision]) -> None:
        """Take more decisions, which come after the others in the log."""
        held = dict(self.decisions) | dict(decisions)
        self.decisions = tuple(Decision(*one) for one in sorted(held.items()))

    def at(self, topic: str, timestamp_ms: int) -> int:
        """The lateness, in ms, of events in records of that Kafka timestamp."""
        most = self.by_topic[topic].max_ms
        place = bisect_right(self.decisions, (timestamp_ms, 2**63)) - 1
        return min(most, self.decisions[place].lateness_ms) if place >= 0 and topic in self.learned else most

    def oldest(self, topic: str, timestamp_ms: int) -> int:
        """The oldest event time, in ms, that is not late in any record of that Kafka timestamp or a later one."""
        ahead = (one.from_ms for one in self.decisions if one.from_ms > timestamp_ms)
        return min(time - self.at(topic, time) for time in (timestamp_ms, *ahead))
