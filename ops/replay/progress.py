"""How far a generation has come, from what its jobs have committed."""

from dataclasses import dataclass

from connectors.kafka.offsets import Log, missing
from infra.contract.offsets import Offsets
from infra.contract.topics import TopicMap
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import Generation


@dataclass(frozen=True)
class Progress:
    """Of a generation's first job, in records of its input, and what its followers have not yet read."""

    done: int
    left: int
    reached_ms: int | None  # log time of the slowest partition
    behind: dict[str, int]  # by consumer group, as their inputs are now


class Watched:
    """Asks the broker about one generation's jobs."""

    def __init__(self, generation: Generation, topics: TopicMap, settings: Settings, log: Log) -> None:
        self.generation, self.topics, self.log = generation, topics, log
        self.settings = settings.model_copy(update={"generation": generation.name})

    def progress(self) -> Progress:
        """As of now."""
        groups = self.groups()
        first = next(iter(groups))
        ends = self.target(first)
        starts = self.generation.replay.start
        at = self._offsets(first, ends, starts)
        left = missing(at, ends)
        done = sum(max(0, offset - starts.get(place, 0)) for place, offset in at.items())
        unfinished = {place: offset for place, offset in at.items() if offset < ends[place]} or at
        times = self.log.times({place: offset for place, offset in unfinished.items() if offset > starts.get(place, 0)})
        behind = {group: self.behind(group) for group in list(groups)[1:]}
        return Progress(done, left, min(times.values(), default=None), behind)

    def reached(self) -> int:
        """The event time, ms, up to which the end of the chain has judged every partition; 0 if it has read nothing of
        one."""
        group = self.settings.query_of("incidents")
        ends = self.log.ends(self.groups()[group])
        at = {place: offset for place, offset in self.log.committed(group, ends).items() if ends[place]}
        times = self.log.times(at)
        return min(times.values()) if len(times) == len(at) and times else 0

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The topics that each consumer group of the generation reads, in the order of the chain."""
        name, topics = self.settings.query_of, self.topics
        found = {
            name(query): tuple(topic.name for topic in read)
            for job in self.generation.jobs
            for query, read in JOBS[job].reads_of(topics).items()
        }
        if restored := self.generation.replay.restored:
            found[name(self.generation.jobs[0])] = tuple(restored)
        return found

    def target(self, group: str) -> Offsets:
        """Up to where a group has to read: the plan's end for the first one, else its topics' end as of now."""
        topics = self.groups()[group]
        if group == next(iter(self.groups())) and self.generation.replay.end:
            return self.generation.replay.end
        return self.log.ends(topics)

    def behind(self, group: str, ends: Offsets | None = None) -> int:
        """Offsets before `ends`, or the target, that a group has not committed yet."""
        ends = self.target(group) if ends is None else ends
        return missing(self._offsets(group, ends, self.generation.replay.start), ends)

    def _offsets(self, group: str, partitions: Offsets, starts: Offsets) -> Offsets:
        """Where a group stands; where it has read nothing yet, that is its start, or the log's."""
        committed = self.log.committed(group, partitions)
        lows = self.log.starts({topic for topic, _ in partitions})
        return {at: max(offset, starts.get(at, 0), lows[at]) for at, offset in committed.items()}


class CatchUp:
    """Whether every job has read what there was: group by group, each with the ends when its turn has come."""

    def __init__(self, generations: Watched) -> None:
        self.of = generations
        self._waiting = list(generations.groups())
        self._ends: Offsets | None = None

    def look(self) -> str | None:
        """None once all have; otherwise the group that is being waited for."""
        while self._waiting:
            group = self._waiting[0]
            if self._ends is None:
                self._ends = self.of.target(group)
            if self.of.behind(group, self._ends):
                return group
            self._waiting.pop(0)
            self._ends = None
        return None
