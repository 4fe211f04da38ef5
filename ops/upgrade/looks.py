"""One look at the chain, by Kafka alone: which copy of each query writes, what it has committed, what it has not read.

It needs neither the jobs' volumes nor their addresses, so it is the same wherever they run.
"""

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from connectors.kafka.groups import Groups
from connectors.kafka.security import client_config
from connectors.kafka.standing import Standings
from infra.contract.jobs import PROGRESS_TOPIC
from infra.contract.topics import TopicMap
from jobs.runtime.commits import owner_group, owner_of
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.savepoints.saved import driver_of


@dataclass(frozen=True)
class Stand:
    """Where a query stands.

    Attributes:
        owner: the token of the copy that writes; empty of a query that has none, such as the indexer's.
        batches: how many its driver has committed, ever.
        lag: what it has not read, in offsets.
        end: the ends of what it reads, added up.
        has_committed: whether it has ever committed how far it has read.
    """

    owner: str
    batches: int
    lag: int
    end: int
    has_committed: bool = True


@dataclass(frozen=True)
class Look:
    """The queries at a moment, in seconds of the monotonic clock."""

    at: float
    stands: Mapping[str, Stand]


class Chain:
    """The queries of some jobs, to be looked at again and again. Close it."""

    def __init__(self, settings: Settings, topics: TopicMap, jobs: Collection[str]) -> None:
        connection = client_config(settings.kafka_bootstrap)
        self._settings, self._progress = settings, topics[PROGRESS_TOPIC].name
        self._standings, self._groups = Standings(connection), Groups(connection)
        self._reads = {
            query: [topic.name for topic in read] for job in jobs for query, read in JOBS[job].reads_of(topics).items()
        }

    def look(self) -> Look:
        """Raises KafkaException if the broker doesn't answer."""
        return Look(time.monotonic(), {query: self._stand(query, read) for query, read in self._reads.items()})

    def _stand(self, query: str, read: list[str]) -> Stand:
        name, place = self._settings.query_of(query), (self._progress, 0)
        # Where a group has committed nothing it reads from the beginning, or, of the notifier, from the end.
        standings = [one for one in self._standings.look(name, read).values() if one.has_committed]
        done = self._groups.committed(driver_of(self._settings, name, "").group, [place])
        return Stand(
            owner_of(self._groups.consumer(owner_group(name)), self._progress).token,
            done.get(place, 0),
            sum(one.lag for one in standings),
            sum(one.end for one in standings),
            bool(standings),
        )

    def close(self) -> None:
        """Leave the broker."""
        self._standings.close()
        self._groups.close()
