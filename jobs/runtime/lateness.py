"""Learns from the log how late events come, and follows what has been decided from that.

The delay of a record is its Kafka timestamp minus the time of its oldest event; of those that a micro-batch makes one
of, the longest counts. They are counted by topic over the last hour of Kafka time; what all but a share of them need,
with half as much again, becomes a decision for the time to come.
"""

import math
from collections import Counter
from collections.abc import Mapping

from connectors.kafka.client import make_admin
from connectors.kafka.offsets import latest_offsets
from connectors.kafka.reader import read_records
from connectors.kafka.security import client_config
from infra.contract.lateness import TOPIC, AllowedLateness, Decision
from infra.contract.offsets import Offsets
from infra.contract.topics import TopicMap
from jobs.runtime.last_hour import REMEMBERED_MS, LastHour

TENTH_MS = 100  # delays are counted in tenths of a second
ENOUGH = 300  # records, before anything is decided
FIRST_MS = 60_000  # for so long delays are watched before the first decision; an hour before one that shortens it
NOTICE_MS = 30_000  # at least, from the newest record that was read to where a decision begins
PAUSE_MS = 10_000  # of Kafka time, between two looks at what has come
RESERVE = 1.5  # the next hour isn't the last one
_SHORTEST_MS = 1_000

Delays = Mapping[str, Mapping[int, int]]  # by topic: how many records had each delay, in tenths of a second


class LatenessLearner:
    """What has come over the last hour of Kafka time, and what follows from it."""

    def __init__(self, allowed: AllowedLateness) -> None:
        self.allowed = allowed
        self._last_hour = LastHour(Counter[tuple[str, int]])
        self._since_ms: int | None = None  # the Kafka time from which all that came has been counted
        self._considered_ms = 0

    def observe(self, delays: Delays, begun_ms: int, newest_ms: int) -> None:
        """Take the delays of a batch.

        Args:
            delays: the delays of its records.
            begun_ms: the latest of its partitions' oldest Kafka timestamps: from there on all of them are counted.
            newest_ms: its newest Kafka timestamp.
        """
        if self._since_ms is None:
            self._since_ms = begun_ms
        counts = self._last_hour.at(newest_ms)
        for topic in delays.keys() & self.allowed.learned.keys():
            most = self.allowed.by_topic[topic].max_ms // TENTH_MS  # what is later than that is late in any case
            counts.update({(topic, one): count for one, count in delays[topic].items() if one <= most})

    def decision(self, newest_ms: int) -> Decision | None:
        """What is to hold from now on, if that is something else; longer at once, shorter after an hour."""
        if self._since_ms is None or newest_ms < self._considered_ms + PAUSE_MS:
            return None
        self._considered_ms = newest_ms
        wanted, latest = self._wanted_ms(), self.allowed.latest_ms
        if wanted is None or wanted == latest:
            return None
        watched = REMEMBERED_MS if self.allowed.decisions else FIRST_MS
        if wanted < latest and newest_ms < self._since_ms + watched:
            return None
        # What may be older from then on must not be older than the watermarks that have been written until now.
        return Decision(newest_ms + NOTICE_MS + max(0, wanted - latest), wanted)

    def _wanted_ms(self) -> int | None:
        """What the slowest topic needs, in whole seconds; None while too few records have come to tell."""
        counts = sum(self._last_hour, Counter[tuple[str, int]]())
        if counts.total() < ENOUGH:
            return None
        needed = max(
            _quantile({tenths: count for (name, tenths), count in counts.items() if name == topic}, share)
            for topic, share in self.allowed.learned.items()
        )
        seconds = math.ceil(RESERVE * needed * TENTH_MS / 1000)
        return min(self.allowed.most_ms, max(_SHORTEST_MS, seconds * 1000))


def _quantile(counts: Mapping[int, int], share: float) -> int:
    """The least delay that at most this share of the records exceeds; 0 if there are none."""
    spared = int(sum(counts.values()) * share)
    for delay in sorted(counts, reverse=True):
        spared -= counts[delay]
        if spared < 0:
            return delay
    return 0


class LatenessFollower:
    """Keeps an AllowedLateness at what the topic of decisions says."""

    def __init__(self, bootstrap: str, topics: TopicMap) -> None:
        self.allowed = AllowedLateness.of(topics)
        self._bootstrap, self._topic = bootstrap, topics[TOPIC]
        self._admin = make_admin(client_config(bootstrap)) if self.allowed.learned else None
        self._seen: Offsets = {}

    def catch_up(self) -> AllowedLateness:
        """Take what was decided since the last call; nothing is asked where the map gives no share."""
        if self._admin is None:
            return self.allowed
        ends = latest_offsets(self._admin, [(self._topic.name, 0)])
        if ends != self._seen:
            found = (Decision.of(record) for _, record in read_records(self._bootstrap, self._topic.name))
            self.allowed.decide(decision for decision in found if decision)
            self._seen = ends
        return self.allowed
