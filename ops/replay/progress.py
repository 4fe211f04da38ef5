"""The progress of a generation, from the offsets that its jobs have committed."""

from dataclasses import dataclass

from connectors.kafka.offsets import Log, missing
from infra.contract.offsets import Offsets
from infra.contract.topics import TopicMap
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import Generation


@dataclass(frozen=True)
class Progress:
    """The progress of a generation's first job, in offsets of its input, and the lag of the jobs that follow it."""

    done: int
    left: int
    reached_ms: int | None  # Kafka timestamp that the slowest partition has reached
    behind: dict[str, int]  # lag by consumer group, to the present ends of its topics


class Watched:
    """Asks the broker for the progress of one generation's jobs."""

    def __init__(self, generation: Generation, topics: TopicMap, settings: Settings, log: Log) -> None:
        self.generation, self.topics, self.log = generation, topics, log
        self.settings = settings.model_copy(update={"generation": generation.name})

    def progress(self) -> Progress:
        """The present progress."""
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
        """The event time, ms, up to which the last job has read every partition; 0 if it has read nothing of one."""
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

    def stages(self) -> list[list[str]]:
        """The consumer groups in the order of the chain; those that write tables and indices come last, all at once."""
        chain, last = [], []
        for job in self.generation.jobs:
            queries = [self.settings.query_of(query) for query in JOBS[job].reads_of(self.topics)]
            if JOBS[job].sink == "kafka":
                chain += [[query] for query in queries]
            else:
                last += queries
        return [*chain, last] if last else chain

    def target(self, group: str) -> Offsets:
        """The offsets up to which a group has to read: the plan's end for the first group, else its topics' ends."""
        topics = self.groups()[group]
        if group == next(iter(self.groups())) and self.generation.replay.end:
            return self.generation.replay.end
        return self.log.ends(topics)

    def behind(self, group: str, ends: Offsets | None = None) -> int:
        """The lag of a group to `ends`, by default to its target, in offsets."""
        ends = self.target(group) if ends is None else ends
        return missing(self._offsets(group, ends, self.generation.replay.start), ends)

    def _offsets(self, group: str, partitions: Offsets, starts: Offsets) -> Offsets:
        """The committed offsets of a group; where it has none yet, the start of the plan or of the log."""
        committed = self.log.committed(group, partitions)
        lows = self.log.starts({topic for topic, _ in partitions})
        return {at: max(offset, starts.get(at, 0), lows[at]) for at, offset in committed.items()}


class CatchUp:
    """Whether every job has caught up: stage by stage of the chain, each to the ends when its turn comes."""

    def __init__(self, watched: Watched) -> None:
        self.watched = watched
        self._stages = watched.stages()
        self._ends: dict[str, Offsets] = {}  # of the stage's groups that still have a lag

    def look(self) -> str | None:
        """A group that still has a lag, or None once all have caught up."""
        while self._stages:
            self._ends = self._ends or {group: self.watched.target(group) for group in self._stages[0]}
            self._ends = {group: ends for group, ends in self._ends.items() if self.watched.behind(group, ends)}
            if self._ends:
                return next(iter(self._ends))
            self._stages.pop(0)
        return None
