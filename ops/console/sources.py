"""What the console reads: Kafka, Elasticsearch and the `/metrics` of the jobs, by the project's own clients."""

import copy
import threading
from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cached_property, partial
from shlex import quote
from typing import Any

from connectors.kafka.groups import Groups
from connectors.kafka.offsets import Log, missing
from connectors.kafka.security import client_config
from infra.contract.offsets import Offsets
from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.detector.control import TOPIC as CONTROL_TOPIC
from jobs.detector.control import history as read_control
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.console.documents import ELASTICSEARCH, Documents
from ops.console.history import History
from ops.console.operations import Operations, listed
from ops.console.pace import Pace
from ops.console.reads import SharedReads, SourceDown
from ops.console.running_jobs import RunningJobs
from ops.console.settings import ConsoleSettings
from ops.console.unchanged import UnchangedTopics
from ops.dead_letters import OriginalLostError, read_original
from ops.replay import views
from ops.replay.progress import Watched
from ops.replay.registry import TOPIC as GENERATIONS
from ops.replay.registry import Registry
from ops.sql.ask import Limits, ask

KAFKA = "Kafka"
COMMANDS, COMMAND_SECONDS = "kappa", 30.0
MOST_QUERIES = 2  # of the Delta tables at once: each is a process
ROWS = 1_000  # of a query's result


class Sources:
    """What one generation of the chain says: Kafka here, Elasticsearch by `documents`, its jobs by `running`.

    Each read raises SourceDown if its server can't be read now.
    """

    def __init__(self, settings: Settings, own: ConsoleSettings) -> None:
        self.settings, self._own = settings, own
        self.documents, self.running = Documents(settings, own, self._indices), RunningJobs(settings, own)
        self._kafka = SharedReads(KAFKA, own.patience_seconds, own.fresh_seconds)
        # Asked as often as they are needed, and apart from the others: what changes makes those forget.
        self._topic_signs = SharedReads(KAFKA, own.patience_seconds, 0)
        environment = {
            "KAPPA_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
            "KAPPA_ELASTICSEARCH_URL": settings.elasticsearch_url,
        }
        self.history = History()
        self.operations = Operations(environment, own.toolbox)
        self._commands = SharedReads(COMMANDS, COMMAND_SECONDS, COMMAND_SECONDS)
        self._paces: dict[str, Pace] = defaultdict(Pace)
        self._asking = threading.BoundedSemaphore(MOST_QUERIES)
        self._log = Log(settings.kafka_bootstrap)
        self._groups, self._topics = Groups(client_config(settings.kafka_bootstrap)), UnchangedTopics(self._log)

    def lags(self) -> dict[str, int]:
        """Records that each query of the running jobs has not read yet, by the query's name."""
        return self._kafka.read("lags", self._lags)

    def _lags(self) -> dict[str, int]:
        topics = self.topics()
        reads = {
            query: {topic.name for topic in read}
            for job in JOBS.enabled(self.settings.optional_jobs)
            for query, read in JOBS[job].reads_of(topics).items()
        }
        names = sorted(set().union(*reads.values()))
        ends, starts = self._log.ends(names), self._log.starts(names)
        ends_of = {query: {at: end for at, end in ends.items() if at[0] in read} for query, read in reads.items()}
        group = self.settings.query_of
        return {
            query: _unread(self._groups.committed(group(query), own), starts, own) for query, own in ends_of.items()
        }

    def of(self, generation: str) -> "Sources":
        """The same servers, with the documents of a generation, promoted or not."""
        other = copy.copy(self)
        other.documents = self.documents.of(generation)
        return other

    def _indices(self, generation: str) -> dict[str, Any]:
        return dict(views.indices(generation, self.registry(), self._declared))

    def ends(self, topics: Mapping[str, str]) -> dict[str, object]:
        """By name the ends of a topic's partitions: never an old answer."""
        return self._topic_signs.read("ends", lambda: self._ends(topics))

    def _ends(self, topics: Mapping[str, str]) -> dict[str, object]:
        names = {feed: self.topics()[key].name for feed, key in topics.items()}
        found = self._log.ends(names.values())
        return {feed: [end for (topic, _), end in found.items() if topic == name] for feed, name in names.items()}

    def original(self, source: Mapping[str, Any]) -> bytes | None:
        """The record that a dead letter is about, from its own topic, or None if that has deleted it."""
        place = str(source["topic"]), int(source["partition"]), int(source["offset"])
        return self._kafka.read(("original", *place), lambda: self._original(*place))

    def _original(self, topic: str, partition: int, offset: int) -> bytes | None:
        try:
            return read_original(self.settings.kafka_bootstrap, topic, partition, offset)
        except OriginalLostError:
            return None

    def ask(self, sql: str) -> dict[str, Any]:
        """What a query of the Delta tables gives; of an empty one, how fresh they are. Raises UserError."""
        if self._own.toolbox:
            raise UserError(f"the tables are out of reach here; ask by: {self._own.toolbox} sql {quote(sql)}")
        if not self._asking.acquire(blocking=False):
            raise UserError(f"sql: {MOST_QUERIES} queries are being answered; try again")
        try:
            return ask(sql, Limits(self._own.sql_seconds, self._own.sql_memory_mb, ROWS))
        finally:
            self._asking.release()

    def registry(self) -> Registry:
        """The generations and the promotion."""
        read = partial(Registry.read, self.settings.kafka_bootstrap)
        return self._kafka.read("registry", lambda: self._topics.read(GENERATIONS, read))

    def progress(self, generation: str) -> dict[str, Any]:
        """How far a generation is, in records, and how many seconds it still takes at its pace of the last minute."""
        return self._kafka.read(("progress", generation), lambda: self._progress(generation))

    def _progress(self, generation: str) -> dict[str, Any]:
        registry = Registry.read(self.settings.kafka_bootstrap)
        topics = registry.topics(generation, self._declared)
        now = Watched(registry.find(generation), topics, self.settings, self._log).progress()
        rate = self._paces[generation].rate(now.done)
        behind = sum(now.behind.values())
        seconds = now.left / rate if rate and now.left else None
        return {"done": now.done, "left": now.left, "behind": behind, "reached": now.reached_ms, "seconds": seconds}

    def savepoints(self) -> list[dict[str, Any]]:
        """The savepoints, as `kappa savepoint list` says."""
        if self._own.toolbox:
            raise UserError(f"they are out of reach here; list them by: {self._own.toolbox} savepoint list")
        return self._commands.read("savepoints", lambda: list(listed(["savepoint", "list", "--json"])))

    def control(self) -> list[dict[str, Any]]:
        """What people told the detector, each with its `time` in ms, the oldest first."""
        topic = self.topics()[CONTROL_TOPIC].name
        read = partial(read_control, self.settings.kafka_bootstrap, topic)
        return self._kafka.read("control", lambda: self._topics.read(topic, read))

    def topics(self) -> TopicMap:
        """The map of the settings' generation; the file is read once. Raises UserError if it can't be used."""
        return JOBS.topics_in(self._declared, self.settings.generation)

    @cached_property
    def _declared(self) -> TopicMap:
        return load_topics(self.settings.topics_file)

    def shown_topics(self) -> TopicMap:
        """The map of topics of the promoted generation, whose documents Elasticsearch shows."""
        registry = self.registry()
        return registry.topics(registry.promotion.generation, self._declared)

    def forget(self, names: Collection[str] | None = None) -> None:
        """What was read of these sources, by default of all, isn't shown again."""
        of_servers = {KAFKA: self._kafka, ELASTICSEARCH: self.documents.reads}
        for name, reads in (of_servers | self.running.reads).items():
            if names is None or name in names:
                reads.forget()

    def check(self) -> None:
        """Raises SourceDown if neither Kafka nor Elasticsearch answers."""
        try:
            self.registry()
        except SourceDown:
            self.documents.search("incidents", size=0)


def _unread(committed: Offsets, starts: Offsets, ends: Offsets) -> int:
    """How many offsets that retention has left lie before the ends."""
    return missing({at: max(start, committed.get(at, start)) for at, start in starts.items()}, ends)
