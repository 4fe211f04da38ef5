"""The types of the job table, and what can be derived from the table and the map of topics.

A job is declared once, as a row of `jobs/table.py`. The graph of the jobs, their consumer groups, the process that runs
each job and the needs of a replay are derived here from the rows. Nothing here imports Spark or a job's code.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from importlib import import_module
from itertools import permutations
from typing import Any, Literal

from pydantic_settings import BaseSettings

from infra.contract.topics import LIVE, Topic, TopicMap
from infra.errors import UserError

PROGRESS_TOPIC = "sink.progress"  # its partitions carry the progress markers of the transactional sinks


class Topics(Enum):
    """A group of topics of the map: in a row of the table it stands for each topic of the group."""

    TELEMETRY = "telemetry"  # what collectors write and a decoder reads
    ARCHIVED = "archived"  # what the archive keeps
    INDEXED = "indexed"  # what goes to Elasticsearch

    def of(self, topics: TopicMap) -> tuple[Topic, ...]:
        """The topics of the group in a map of topics."""
        found: tuple[Topic, ...] = getattr(topics, self.value)
        return found


# The queries of a job: the topics that each one reads, by the query's name. A query's name is the job's, or it begins
# with the job's and a dot.
Queries = Callable[[TopicMap], Mapping[str, tuple[Topic, ...]]]


@dataclass(frozen=True)
class Job:
    """A row of the job table.

    Attributes:
        name: of the job, of its package below `jobs/`, and of its query.
        reads: its input: topics, by their key in the map, or groups of topics; a replay replays them.
        writes: the topics that it writes, by their key.
        code: `module:object` of what it does: for a job that uses Spark an Implementation (jobs.runtime.job), such as a
            Transform or a Fold; else a function of settings, topics and the event that stops it.
        sink: where it writes its results.
        beside: topics that it also reads and that a replay doesn't replay: for look-ups, or with retried dead letters.
        watermarks: the topic for which it writes watermark records by the time of what it read; folds pass on those
            that they read.
        decides: the topic to which it writes what it decides for all generations.
        settings: `module:class` of its own settings, if it has any.
        state_settings: the settings that its state depends on: a savepoint can only be restored with the same values.
        application: the process in which it runs; its own by default.
        queries: `module:function` (see Queries), if it has other queries than one of its own name.
        realtime: `module:function` that runs its real-time mode, if it has one.
        optional: whether it runs only where KAPPA_OPTIONAL_JOBS names it.
    """

    name: str
    reads: tuple[str | Topics, ...]
    writes: tuple[str, ...]
    code: str
    sink: Literal["kafka", "delta", "elasticsearch", "people"] = "kafka"
    beside: tuple[str, ...] = ()
    watermarks: str | None = None
    decides: str | None = None
    settings: str | None = None
    state_settings: tuple[str, ...] = ()
    application: str = ""
    queries: str | None = None
    realtime: str | None = None
    optional: bool = False

    @property
    def runs_in(self) -> str:
        """The name of the application that runs it."""
        return self.application or self.name

    @property
    def uses_spark(self) -> bool:
        """Whether it runs in a Spark application; else it is plain Python."""
        return self.sink in ("kafka", "delta")

    @property
    def is_background(self) -> bool:
        """Whether nobody waits for it: tables may be minutes behind, while results are wanted in seconds."""
        return self.sink == "delta"

    @property
    def is_for_readers(self) -> bool:
        """Whether it keeps what others say where readers find it, in tables or documents."""
        return self.sink in ("delta", "elasticsearch")

    @property
    def is_replayable(self) -> bool:
        """Whether a replay can begin with it: it reads the log from any offset, and its output goes back to the log."""
        return self.sink == "kafka"

    @property
    def follows_replays(self) -> bool:
        """Whether it runs in a replay that begins before it: people must not be told again what has long happened."""
        return self.sink != "people"

    def inputs(self, topics: TopicMap) -> tuple[Topic, ...]:
        """The topics of its input, in a generation's map."""
        found = [one.of(topics) if isinstance(one, Topics) else (topics[one],) for one in self.reads]
        return tuple(dict.fromkeys(topic for group in found for topic in group))

    def reads_of(self, topics: TopicMap) -> Mapping[str, tuple[Topic, ...]]:
        """The topics that each of its queries reads, by the query's name, which also names its consumer group."""
        return load(self.queries)(topics) if self.queries else {self.name: self.inputs(topics)}

    def implementation(self) -> Any:
        """The object that `code` names; loading it may take seconds, as it imports Spark."""
        return load(self.code)

    def settings_class(self) -> type[BaseSettings] | None:
        """The class of its own settings, or None if it has none."""
        return load(self.settings) if self.settings else None


def load(entry_point: str) -> Any:
    """Import the object that `module:name` names."""
    module, _, name = entry_point.partition(":")
    return getattr(import_module(module), name)


@dataclass(frozen=True)
class JobTable:
    """All jobs, in the order in which their processes are started and their metrics ports are counted."""

    jobs: tuple[Job, ...]

    def __iter__(self) -> Iterator[Job]:
        return iter(self.jobs)

    def __getitem__(self, name: str) -> Job:
        """Raises UserError if there is no such job."""
        for job in self.jobs:
            if job.name == name:
                return job
        raise UserError(f"job {name!r}: there is none; there are {', '.join(self.names())}")

    def names(self) -> tuple[str, ...]:
        """The names of all jobs, the optional ones included."""
        return tuple(job.name for job in self.jobs)

    def enabled(self, optional: Collection[str] = ()) -> tuple[str, ...]:
        """The names of the jobs that run if the optional jobs `optional` are switched on.

        Raises UserError if one of these is no optional job.
        """
        known = {job.name for job in self.jobs if job.optional}
        if unknown := sorted(set(optional) - known):
            raise UserError(f"KAPPA_OPTIONAL_JOBS={unknown[0]!r}: there are {', '.join(sorted(known)) or 'none'}")
        return tuple(job.name for job in self.jobs if not job.optional or job.name in optional)

    def applications(self, jobs: Collection[str]) -> dict[str, tuple[str, ...]]:
        """The names of `jobs` by application; applications and jobs are in the table's order."""
        found: dict[str, tuple[str, ...]] = {}
        for job in self.jobs:
            if job.name in jobs:
                found[job.runs_in] = (*found.get(job.runs_in, ()), job.name)
        return found

    def with_followers(self, name: str, topics: TopicMap, among: Collection[str]) -> tuple[str, ...]:
        """A job and those of `among` that read, directly or not, what it writes; in the table's order.

        Raises UserError if there is no such job.
        """
        found, fresh = {name}, [self[name]]
        while fresh:
            written = {topics[key].name for job in fresh for key in job.writes}
            following = [job for job in self.jobs if job.name in among and job.name not in found]
            fresh = [job for job in following if written & {topic.name for topic in job.inputs(topics)}]
            found |= {job.name for job in fresh}
        return tuple(job.name for job in self.jobs if job.name in found)

    def writers(self, key: str) -> tuple[str, ...]:
        """The names of the jobs that write a topic, given by its key."""
        return tuple(job.name for job in self.jobs if key in job.writes)

    def written(self, jobs: Iterable[str]) -> frozenset[str]:
        """The keys of the topics that any of these jobs writes."""
        return frozenset(key for name in jobs for key in self[name].writes)

    def used(self, jobs: Iterable[str], topics: TopicMap) -> tuple[Topic, ...]:
        """Every topic that any of these jobs reads or writes: they must exist before one of the jobs starts."""
        found: dict[str, Topic] = {}
        for job in map(self.__getitem__, jobs):
            keys = (*job.beside, *job.writes, *((PROGRESS_TOPIC,) if job.uses_spark else ()))
            found |= {topic.name: topic for topic in (*job.inputs(topics), *(topics[key] for key in keys))}
        return tuple(found.values())

    def topics_in(
        self, topics: TopicMap, generation: str, jobs: Collection[str] | None = None, base: TopicMap | None = None
    ) -> TopicMap:
        """The map of a generation that runs `jobs` (None: all); topics that these don't write are those of `base`.

        A generation of the whole chain has topics of its own for optional jobs too, whether they run or not.

        Raises UserError if the name can't be part of a topic's.
        """
        if generation == LIVE:
            return topics
        running = self.names() if jobs is None or {*self.enabled()} <= {*jobs} else tuple(jobs)
        beside = {key for name in running for key in self[name].beside}
        return topics.in_generation(generation, self.written(running) | beside, base or topics)

    def check(self, topics: TopicMap) -> None:
        """Raises UserError if a topic of the table is missing in the map, or a topic of the map has no writer."""
        for one, other in permutations(self.names(), 2):
            if other.startswith(one):
                raise UserError(f"job {other!r}: begins with the name of job {one!r}, and so would be open to its user")
        for job in self.jobs:
            for key in (*(name for name in job.reads if isinstance(name, str)), *job.beside, *job.writes):
                if key not in topics.topics:
                    raise UserError(f"topic {key!r}: job {job.name} uses it, but the map lacks it")
        for key, topic in topics.topics.items():
            if named := sorted({*self.names()} & {*topic.written_by}):
                raise UserError(
                    f"topic {key!r}: written_by names the job {named[0]}: leave that out, as the map of version 0.1.0 "
                    "had it; what jobs write is in the table of jobs"
                )
            if not topic.written_by and not self.writers(key):
                raise UserError(f"topic {key!r}: nobody writes it: no job does, and it has no written_by")
