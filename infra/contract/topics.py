"""The map of topics: the declarations of infra/topics.yaml, read and checked."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from infra.errors import UserError
from infra.settings import describe

DEFAULT_MAP = Path(__file__).parents[1] / "topics.yaml"
LIVE = "live"
LARGEST_MESSAGE_BYTES = 10 * 1024 * 1024  # a record of 10 MB, which is what the jobs' producers send at most
GENERATION = r"[a-z0-9][a-z0-9-]{0,30}"

UNITS = {"ms": "milliseconds", "s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_duration(text: object) -> timedelta:
    """A duration such as 500ms, 20s, 15m, 6h or 7d."""
    if isinstance(text, timedelta):
        return text
    found = re.fullmatch(r"(\d+)(ms|s|m|h|d)", str(text))
    if not found:
        raise ValueError("write a whole number and a unit: 500ms, 20s, 15m, 6h or 7d")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def format_duration(duration: timedelta) -> str:
    """The duration as text for `parse_duration`, in the largest unit that fits; ValueError if finer than 1 ms."""
    for unit, name in reversed(UNITS.items()):
        count, rest = divmod(duration, timedelta(**{name: 1}))
        if not rest:
            return f"{count}{unit}"
    raise ValueError(f"{duration} is finer than a millisecond")


def in_nanoseconds(duration: timedelta) -> int:
    """A duration as a whole number of nanoseconds, exactly: a float would round it."""
    return duration // timedelta(microseconds=1) * 1000


Duration = Annotated[timedelta, BeforeValidator(parse_duration)]


class Lateness(BaseModel):
    """By how much an event may be older than its Kafka timestamp: by `max`, or with `share` by less once it is known
    that at most this share of a topic's records would come later (infra/contract/lateness.py)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max: Duration
    share: Annotated[float | None, Field(gt=0, lt=1)] = None

    @property
    def max_ms(self) -> int:
        """The most in milliseconds."""
        return self.max // timedelta(milliseconds=1)

    def __str__(self) -> str:
        """As tables show it: a duration alone is always waited for."""
        most = format_duration(self.max)
        return most if self.share is None else f"all but {self.share:g}, at most {most}"


def _as_lateness(declared: object) -> object:
    """A duration alone is always waited for."""
    return declared if isinstance(declared, dict | Lateness) else {"max": declared}


class Identity(BaseModel):
    """Which machines a record of a topic may be about: those of its principal, by their names or by the inventory.

    The principal is the topic's one writer, or who a header of the record names, where a gateway sets it that is the
    topic's one writer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    machines: Literal["prefix", "tenant"]  # named `<principal>`, `<principal>-…` or `<principal>/…`; or of this tenant
    principal_header: str | None = None


class Quota(BaseModel):
    """What a user of Kafka may ask of each broker: bytes a second, and a share of its threads' time; None: anything."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    produce_bytes: Annotated[int | None, Field(ge=1)] = None
    consume_bytes: Annotated[int | None, Field(ge=1)] = None
    request_percent: Annotated[float | None, Field(gt=0)] = None  # 100 is one thread

    def in_kafkas_names(self) -> dict[str, float]:
        """The quotas that are declared, as Kafka calls them."""
        named = {
            "producer_byte_rate": self.produce_bytes,
            "consumer_byte_rate": self.consume_bytes,
            "request_percentage": self.request_percent,
        }
        return {name: float(value) for name, value in named.items() if value is not None}


class Topic(BaseModel):
    """The declaration of one topic; topics.yaml explains the fields. `name` is the topic's name on the broker."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$", max_length=249)]
    about: str
    key: str
    written_by: tuple[str, ...] = ()  # who writes it, if no job does: the job table says which topics jobs write
    per_generation: bool = False  # of a topic that no job writes: whether each generation has its own all the same
    partitions: Annotated[int, Field(ge=1)]
    retention: Duration
    max_message_bytes: Annotated[int, Field(ge=1_000_000)] = LARGEST_MESSAGE_BYTES
    cleanup: Literal["delete", "compact"]
    timestamp: Literal["CreateTime", "LogAppendTime"]
    archive: Literal["raw", "parsed", "none"]
    archive_retention: Annotated[Duration, Field(ge=timedelta(days=1))] = timedelta(days=90)
    index: str | None = None  # the kind of documents that its records become in Elasticsearch
    schema_name: Annotated[str | None, Field(alias="schema")] = None
    group: str | None = None
    format: str | None = None
    lateness: Annotated[Lateness | None, BeforeValidator(_as_lateness)] = None
    future: Duration | None = None
    shards: str | None = None
    identity: Identity | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.format and (self.lateness is None or self.future is None):
            raise ValueError("a topic with a format needs lateness and future")
        if self.archive == "parsed" and self.schema_name is None:
            raise ValueError("archive: parsed needs a schema")
        if self.identity and not (self.format and len(self.written_by) == 1):
            raise ValueError("identity: only a topic with a format and one writer (written_by) can have it")
        return self

    @property
    def is_derived(self) -> bool:
        """Whether each generation has a topic of its own: those that jobs write, and that of retried dead letters."""
        return not self.written_by or self.per_generation

    @property
    def config(self) -> dict[str, str]:
        """The broker's topic settings that the map determines."""
        config = {
            "cleanup.policy": self.cleanup,
            "message.timestamp.type": self.timestamp,
            "max.message.bytes": str(self.max_message_bytes),
        }
        kept = "retention.ms" if self.cleanup == "delete" else "min.compaction.lag.ms"
        return config | {kept: str(self.retention // timedelta(milliseconds=1))}


@dataclass(frozen=True)
class TopicMap:
    """The topics of a generation by their key, which is the same in every generation: `topics["events"].name`.

    `own` are the keys of the topics that the generation writes itself, None for all; it reads the others from the
    generation that it is based on.
    """

    topics: Mapping[str, Topic]
    own: frozenset[str] | None = None
    quotas: Mapping[str, Quota] = field(default_factory=dict)  # by the name of a user, as in `written_by`

    def __getitem__(self, name: str) -> Topic:
        if name not in self.topics:
            raise UserError(f"topic {name!r} is not in the map; it has {', '.join(self.topics)}")
        return self.topics[name]

    def __iter__(self) -> Iterator[Topic]:
        return iter(self.topics.values())

    @property
    def telemetry(self) -> tuple[Topic, ...]:
        """The topics that collectors write and a decoder reads."""
        return tuple(topic for topic in self if topic.format)

    @property
    def archived(self) -> tuple[Topic, ...]:
        """The topics that this generation's archive keeps."""
        return tuple(topic for key, topic in self.topics.items() if topic.archive != "none" and self.owns(key))

    @property
    def indexed(self) -> tuple[Topic, ...]:
        """The topics that this generation's indexer writes to Elasticsearch."""
        return tuple(topic for key, topic in self.topics.items() if topic.index and self.owns(key))

    @property
    def derived(self) -> tuple[Topic, ...]:
        """The topics that this generation's own jobs write."""
        return tuple(topic for key, topic in self.topics.items() if topic.is_derived and self.owns(key))

    def owns(self, key: str) -> bool:
        """Whether a topic, given by its key, is this generation's own, not that of the one that it is based on."""
        return self.own is None or key in self.own

    def in_generation(self, generation: str, own: Collection[str], base: "TopicMap") -> "TopicMap":
        """The map of a generation: the topics `own`, by key, get its name as a suffix; the others are `base`'s.

        What is sharded by the same has as many partitions as in `base`, which may have more than are declared.

        Raises:
            UserError: the name can't be part of a topic's.
        """
        if not re.fullmatch(GENERATION, generation):
            raise UserError(f"generation={generation!r}: use up to 31 lower-case letters, digits and hyphens, e.g. v2")
        keys = frozenset(key for key, topic in self.topics.items() if topic.is_derived and key in own)
        suffixed = {key: _own(self[key], generation, base[key]) for key in keys}
        if taken := {topic.name for topic in suffixed.values()} & {topic.name for topic in self.topics.values()}:
            raise UserError(f"generation={generation}: its topic {min(taken)!r} is one of the map; choose another name")
        topics = {key: suffixed.get(key) or base[key] for key in self.topics}
        whole = all(key in keys for key, topic in self.topics.items() if topic.is_derived)
        return TopicMap(topics, None if whole else keys)

    def rescaled(self, partitions: int) -> "TopicMap":
        """The same with so many partitions of each sharded topic that this generation's jobs write."""
        topics = {
            key: topic.model_copy(update={"partitions": partitions})
            if topic.is_derived and topic.shards and self.owns(key)
            else topic
            for key, topic in self.topics.items()
        }
        return replace(self, topics=topics)


def _own(topic: Topic, generation: str, base: Topic) -> Topic:
    """A topic as a generation has it of its own, where it would otherwise read `base`."""
    partitions = base.partitions if topic.shards else topic.partitions
    return topic.model_copy(update={"name": f"{topic.name}.{generation}", "partitions": partitions})


def load_topics(path: Path | None = None) -> TopicMap:
    """Read a map; a topic inherits the values of its group, and the defaults, where it has none of its own.

    Raises:
        UserError: the file can't be read, or a value is wrong; the message names topic and field.
    """
    path = path or DEFAULT_MAP
    sections = _read(path)
    declared = sections.pop("topics")
    defaults = sections.pop("defaults", {})
    quotas = _quotas(path, sections.pop("quotas", {}))
    topics = {name: _topic(path, name, _merged(path, name, own, sections, defaults)) for name, own in declared.items()}
    _check_shards(path, topics)
    return TopicMap(topics, quotas=quotas)


def _quotas(path: Path, declared: Any) -> dict[str, Quota]:
    if not isinstance(declared, dict):
        raise UserError(f"{path}: quotas: must map users to their quotas, not {declared!r}")
    found = {}
    for user, fields in declared.items():
        try:
            found[str(user)] = Quota.model_validate(fields)
        except ValidationError as error:
            raise UserError(f"{path}: quotas.{user}: {describe(error)}") from error
    return found


def _read(path: Path) -> dict[str, Any]:
    try:
        sections = yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise UserError(f"{path}: can't be read: {' '.join(str(error).split())}") from error
    if not isinstance(sections, dict) or not isinstance(sections.get("topics"), dict):
        raise UserError(f"{path}: topics: must map topic names to their declarations")
    return sections


def _merged(path: Path, name: str, own: Any, groups: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(own, dict):
        raise UserError(f"{path}: {name}: must be a map of fields, not {own!r}")
    group = own.get("group")
    if group is not None and group not in groups:
        raise UserError(f"{path}: {name}.group={group!r}: no such group; there are {', '.join(groups) or 'none'}")
    return {**defaults, **groups.get(group or "", {}), **own, "name": name}


def _topic(path: Path, name: str, fields: Mapping[str, Any]) -> Topic:
    try:
        return Topic.model_validate(fields)
    except ValidationError as error:
        raise UserError(f"{path}: {name}: {describe(error)}") from error


def _check_shards(path: Path, topics: Mapping[str, Topic]) -> None:
    first: dict[str, Topic] = {}
    for topic in topics.values():
        if topic.shards is None:
            continue
        other = first.setdefault(topic.shards, topic)
        if other.partitions != topic.partitions:
            raise UserError(
                f"{path}: {topic.name}.partitions={topic.partitions}: must equal {other.name}'s {other.partitions}, "
                f"both are sharded by {topic.shards}"
            )
