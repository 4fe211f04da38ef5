"""The registry of generations, kept in the topic `generations`: the plan and state of each, and which is promoted.

The topic is compacted by key: a generation's name has its plan and state, `@promoted` the generation that readers see.
Everything else (aliases, the Delta pointer, the processes that run) is derived from it and can be corrected by it.
"""

from dataclasses import dataclass, field
from typing import Literal

import orjson
from pydantic import BaseModel, ConfigDict

from connectors.kafka import admin
from connectors.kafka.producer import write_now
from connectors.kafka.reader import read_topic
from infra.contract.topics import LIVE, TopicMap
from infra.errors import UserError
from jobs.runtime.replay import Replay
from jobs.table import JOBS

TOPIC = "generations"
PROMOTED = "@promoted"
CHAIN = JOBS.enabled()  # the jobs of a generation that runs everything but what is optional


class Generation(BaseModel):
    """The plan of a generation; what its jobs don't write themselves they read from the generation `base`."""

    model_config = ConfigDict(frozen=True)

    name: str
    base: str
    jobs: tuple[str, ...]
    begin: str = "earliest"  # as given
    until: str = "follow"
    begin_ms: int | None = None  # of a time
    source: Literal["kafka", "delta"] = "kafka"
    settings: dict[str, str] = {}  # `job.setting` -> value, as text
    ref: str | None = None  # the commit whose code it runs
    savepoint: str | None = None
    replay: Replay = Replay()
    state: Literal["restoring", "replaying", "caught up", "dropped"] = "replaying"

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

    def check_runs(self, job: str) -> None:
        """Raises UserError if `job` is not one of its jobs, or if it was dropped."""
        if self.state == "dropped":
            raise UserError(f"generation={self.name}: was dropped; start another one by `kappa replay start`")
        if job not in self.jobs:
            raise UserError(f"generation={self.name}: runs {', '.join(self.jobs)}; {job} is {self.base}'s")


class Promotion(BaseModel):
    """Which generation readers see, and which they saw before."""

    model_config = ConfigDict(frozen=True)

    generation: str = LIVE
    previous: str | None = None


@dataclass
class Registry:
    """The generations and the promotion, as read from the topic."""

    generations: dict[str, Generation] = field(default_factory=dict)
    promotion: Promotion = field(default_factory=Promotion)

    @classmethod
    def read(cls, bootstrap: str) -> "Registry":
        """Read the topic up to its present end; empty if the broker doesn't have it.

        Raises UserError if no broker answers.
        """
        admin.connect(bootstrap)
        registry = cls()
        latest = {(m.key() or b"").decode(): m.value() or b"" for m in read_topic(bootstrap, TOPIC)}
        for key, value in latest.items():
            if key == PROMOTED:
                registry.promotion = Promotion.model_validate_json(value)
            else:
                registry.generations[key] = Generation.model_validate_json(value)
        return registry

    def find(self, name: str) -> Generation:
        """The plan of a generation; the live one is the whole chain. Raises UserError if there is no such one."""
        if name == LIVE:
            return Generation(name=LIVE, base=LIVE, jobs=CHAIN, state="caught up")
        if name not in self.generations or self.generations[name].state == "dropped":
            raise UserError(f"generation={name!r}: there is none; there are {', '.join(self.names)}")
        return self.generations[name]

    @property
    def names(self) -> list[str]:
        """The names of the generations that were not dropped."""
        return [LIVE, *(g.name for g in self.generations.values() if g.state != "dropped")]

    def topics(self, name: str, declared: TopicMap) -> TopicMap:
        """The map of topics of a generation; one without a plan runs the whole chain."""
        generation = self.generations.get(name)
        if name == LIVE or generation is None:
            return JOBS.topics_in(declared, name)
        return JOBS.topics_in(declared, name, generation.jobs, self.topics(generation.base, declared))

    def jobs(self, name: str) -> tuple[str, ...]:
        """The names of the jobs that a generation runs; one without a plan runs all that aren't optional."""
        return self.generations[name].jobs if name in self.generations else CHAIN

    def lineage(self, name: str) -> list[str]:
        """The names of a generation and of those that it reads from, directly or not."""
        generation = self.generations.get(name)
        partial = generation is not None and not {*CHAIN} <= {*generation.jobs}
        return [name, *(self.lineage(generation.base) if generation and partial else ())]


def write(bootstrap: str, record: Generation | Promotion) -> None:
    """Write a record to the topic; it is acknowledged when this returns."""
    key = record.name if isinstance(record, Generation) else PROMOTED
    write_now(bootstrap, TOPIC, key, orjson.dumps(record.model_dump(mode="json"), option=orjson.OPT_NON_STR_KEYS))
