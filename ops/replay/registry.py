"""The registry of generations, kept in the topic `generations`: the plan and state of each, and which is promoted.

The topic is compacted by key: a generation's name has its plan and state, `@promoted` the generation that readers see.
Everything else (aliases, the Delta pointer, the processes that run) is derived from it and can be corrected by it.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Annotated, Literal

import orjson
import structlog
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from connectors.kafka import admin
from connectors.kafka.producer import write_now
from connectors.kafka.reader import read_topic
from infra.contract.offsets import StoredOffsets
from infra.contract.topics import GENERATION, LIVE, TopicMap
from infra.errors import UserError
from infra.settings import describe
from jobs.runtime.replay import Replay
from jobs.table import JOBS
from ops.os_user import author

TOPIC = "generations"
PROMOTED = "@promoted"
CHAIN = JOBS.enabled()  # the jobs of a generation that runs everything but what is optional
LONGEST_LINEAGE = 50  # generations that a generation reads from
_LONGEST_REASON = 300  # of what is said about a record: it repeats what is wrong

log = structlog.get_logger()

Platform = Literal["processes", "compose", "kubernetes"]
Name = Annotated[str, Field(pattern=f"^{GENERATION}$")]  # part of the names of topics, folders and indices


def _known_job(name: str) -> str:
    if name not in JOBS.names():
        raise ValueError(f"there are {', '.join(JOBS.names())}")
    return name


class Generation(BaseModel):
    """The plan of a generation; what its jobs don't write themselves they read from the generation `base`."""

    model_config = ConfigDict(frozen=True)

    name: Name
    base: Name
    jobs: Annotated[tuple[Annotated[str, AfterValidator(_known_job)], ...], Field(min_length=1)]
    begin: str = "earliest"  # as given
    until: str = "follow"
    begin_ms: int | None = None  # of a time; of a rescaled one, since when it has all that its base has
    source: Literal["kafka", "delta"] = "kafka"
    settings: dict[str, str] = {}  # `job.setting` -> value, as text
    # The commit whose code it runs.
    ref: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._/@{}^~+-]*$", max_length=250)] = None
    platform: Platform = "processes"  # what runs its jobs
    # The image that it runs, on a platform of images; none: that of the live generation.
    image: Annotated[str | None, Field(pattern=r"^[a-z0-9][A-Za-z0-9._/:@-]*$", max_length=300)] = None
    savepoint: str | None = None
    replay: Replay = Replay()
    # Of a rescaled one: the partitions of its sharded topics, and where jobs other than the first begin to read.
    partitions: Annotated[int | None, Field(ge=1)] = None
    starts: dict[str, StoredOffsets] = {}
    state: Literal["restoring", "replaying", "caught up", "dropped"] = "replaying"
    by: str = ""  # who planned it, or dropped it

    @model_validator(mode="after")
    def _knows_its_settings_and_topics(self) -> "Generation":
        """What a plan sets are settings of its jobs, and what it has restored, and may delete, are its own topics."""
        for name in self.settings:
            job, dot, setting = name.partition(".")
            known = JOBS[job].settings_class() if job in self.jobs else None
            if dot and (known is None or setting not in known.model_fields):
                raise ValueError(f"settings: {name!r} is no setting of its jobs")
        for restored, original in self.replay.restored.items():
            if restored != f"{original}.{self.name}":
                raise ValueError(f"replay.restored: {restored!r} is no topic of its own")
        return self

    @property
    def follows(self) -> bool:
        """Whether it continues with new records once it has caught up."""
        return not self.replay.end

    def changes(self, job: str) -> dict[str, str]:
        """The settings of a job that the plan changes, as text.

        Raises UserError if the plan is of a version that kept environment variables instead.
        """
        if former := next((name for name in self.settings if "." not in name), None):
            raise UserError(
                f"generation={self.name}: was planned by version 0.1.0 ({former}); drop it and start it again by "
                "`kappa replay start`"
            )
        own = (name.partition(".") for name in self.settings)
        return {setting: self.settings[f"{owner}.{setting}"] for owner, _, setting in own if owner == job}

    def replay_of(self, job: str) -> Replay:
        """What part of the log one of its jobs reads."""
        return self.replay if job == self.jobs[0] else Replay(start=self.starts.get(job, {}))

    def check_runs(self, job: str) -> None:
        """Raises UserError if `job` is not one of its jobs and not one for people, or if it was dropped."""
        if self.state == "dropped":
            raise UserError(f"generation={self.name}: was dropped; start another one by `kappa replay start`")
        if job not in self.jobs and JOBS[job].follows_replays:
            raise UserError(f"generation={self.name}: runs {', '.join(self.jobs)}; {job} is {self.base}'s")


class Promotion(BaseModel):
    """Which generation readers see, and which they saw before."""

    model_config = ConfigDict(frozen=True)

    generation: Name = LIVE
    previous: Name | None = None
    by: str = ""  # who promoted it


@dataclass
class Registry:
    """The generations and the promotion, as read from the topic."""

    generations: dict[str, Generation] = field(default_factory=dict)
    promotion: Promotion = field(default_factory=Promotion)
    refused: dict[str, str] = field(default_factory=dict)  # generations without a record that can be used -> why

    @classmethod
    def read(cls, bootstrap: str) -> "Registry":
        """Read the topic up to its present end; empty if the broker doesn't have it.

        Raises UserError if no broker answers.
        """
        admin.connect(bootstrap)
        return cls.of((m.key() or b"", m.value() or b"") for m in read_topic(bootstrap, TOPIC))

    @classmethod
    def of(cls, records: Iterable[tuple[bytes, bytes]]) -> "Registry":
        """From the topic's keys and values; a record that can't be used is logged, and leaves the one before it."""
        registry = cls()
        for key, value in records:
            name = key.decode(errors="replace")
            try:
                registry._take(name, value)
            except (ValidationError, UserError) as error:
                reason = (describe(error) if isinstance(error, ValidationError) else str(error))[:_LONGEST_REASON]
                log.warning("generation record skipped", generation=name[:_LONGEST_REASON], error=reason)
                if re.fullmatch(GENERATION, name) and name != LIVE and name not in registry.generations:
                    registry.refused[name] = reason
        registry._refuse_circles()
        return registry

    def _take(self, name: str, value: bytes) -> None:
        if name == PROMOTED:
            self.promotion = Promotion.model_validate_json(value)
            return
        found = Generation.model_validate_json(value)
        if found.name != name or name == LIVE:
            raise UserError(f"name={found.name!r}: is not the record's key, or that of the live generation")
        self.generations[name] = found
        self.refused.pop(name, None)

    def _refuse_circles(self) -> None:
        """A generation that reads, by others or not, from itself would be looked for without end."""
        for name in list(self.generations):
            seen, base = {name}, self.generations[name].base
            while base in self.generations and base not in seen and len(seen) <= LONGEST_LINEAGE:
                seen.add(base)
                base = self.generations[base].base
            if base in self.generations:
                reason = f"base={self.generations[name].base}: leads back to it, or over more than {LONGEST_LINEAGE}"
                log.warning("generation record skipped", generation=name, error=reason)
                self.refused[name] = reason
        for name in self.refused:
            self.generations.pop(name, None)

    def planned(self, name: str) -> Generation | None:
        """The plan of a generation, None if nobody planned it.

        Raises UserError if its record can't be used: its jobs must not run as if there were no plan.
        """
        if reason := self.refused.get(name):
            raise UserError(
                f"generation={name}: its record in the topic `{TOPIC}` can't be used ({reason}); "
                "start another one by `kappa replay start`"
            )
        return self.generations.get(name)

    def find(self, name: str) -> Generation:
        """The plan of a generation; the live one is the whole chain. Raises UserError if there is no such one."""
        if name == LIVE:
            return Generation(name=LIVE, base=LIVE, jobs=CHAIN, state="caught up")
        found = self.planned(name)
        if found is None or found.state == "dropped":
            raise UserError(f"generation={name!r}: there is none; there are {', '.join(self.names)}")
        return found

    @property
    def names(self) -> list[str]:
        """The names of the generations that were not dropped."""
        return [LIVE, *(g.name for g in self.generations.values() if g.state != "dropped")]

    def topics(self, name: str, declared: TopicMap) -> TopicMap:
        """The map of topics of a generation; one without a plan runs the whole chain."""
        generation = self.planned(name)
        if name == LIVE or generation is None:
            return JOBS.topics_in(declared, name)
        found = JOBS.topics_in(declared, name, generation.jobs, self.topics(generation.base, declared))
        return found.rescaled(generation.partitions) if generation.partitions else found

    def jobs(self, name: str) -> tuple[str, ...]:
        """The names of the jobs that a generation runs; one without a plan runs all that aren't optional."""
        found = self.planned(name)
        return found.jobs if found else CHAIN

    def lineage(self, name: str) -> list[str]:
        """The names of a generation and of those that it reads from, directly or not."""
        generation = self.planned(name)
        partial = generation is not None and not {*CHAIN} <= {*generation.jobs}
        return [name, *(self.lineage(generation.base) if generation and partial else ())]


def write(bootstrap: str, record: Generation | Promotion) -> None:
    """Write a record to the topic, with who does it; it is acknowledged when this returns."""
    key = record.name if isinstance(record, Generation) else PROMOTED
    if not record.by or (isinstance(record, Generation) and record.state == "dropped"):
        record = record.model_copy(update={"by": author()})
    write_now(bootstrap, TOPIC, key, orjson.dumps(record.model_dump(mode="json"), option=orjson.OPT_NON_STR_KEYS))
