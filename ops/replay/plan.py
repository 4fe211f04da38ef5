"""From what `kappa replay start` was told to a generation's plan: offsets, settings, topics."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import orjson
from pydantic import ValidationError
from pydantic_settings import BaseSettings

from connectors.kafka.offsets import Log
from infra.contract.offsets import Offsets
from infra.contract.topics import GENERATION, LIVE, Topic, TopicMap, load_topics
from infra.errors import UserError
from infra.settings import describe
from jobs.detector.settings import DetectorSettings
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings
from jobs.statistics.settings import StatisticsSettings
from ops.replay.registry import CHAIN, Generation, Registry

SETTINGS: dict[str, type[BaseSettings]] = {"statistics": StatisticsSettings, "detector": DetectorSettings}
SAVEPOINT = "savepoint:"


@dataclass(frozen=True)
class Request:
    """The options of `kappa replay start`."""

    name: str
    job: str
    begin: str = "earliest"
    until: str = "follow"
    changes: Sequence[str] = ()
    where: str | None = None
    max_rate: int | None = None
    base: str | None = None
    source: Literal["kafka", "delta"] = "kafka"

    @property
    def is_from_time(self) -> bool:
        """Whether it begins at a time."""
        return self.begin != "earliest" and not self.begin.startswith(SAVEPOINT)


def plan(
    request: Request, settings: Settings, registry: Registry, log: Log, start: Offsets | None = None
) -> Generation:
    """The generation that was asked for; nothing is written yet. `start` is where a savepoint stands.

    Raises UserError naming the option that can't be met.
    """
    _check_name(request.name, registry)
    base = request.base or registry.promotion.generation
    registry.find(base)
    topics = [topic.name for topic in inputs(request.job, registry.topics(base, load_topics(settings.topics_file)))]
    _check_combination(request)
    begin_ms = parse_time(request.begin) if request.is_from_time else None
    if start is None:
        start = log.starts(topics) if begin_ms is None else log.at(topics, begin_ms)
    from_archive = request.source == "delta"
    return Generation(
        name=request.name,
        base=base,
        jobs=CHAIN[CHAIN.index(request.job) :],
        begin=request.begin,
        until=request.until,
        begin_ms=begin_ms,
        settings=dict(_variable(change) for change in request.changes),
        source=request.source,
        state="restoring" if from_archive else "replaying",
        replay=Replay(max_rate=request.max_rate) if from_archive else _replay(request, start, topics, log),
    )


def _check_combination(request: Request) -> None:
    if request.where and request.job == CHAIN[0]:
        raise UserError("--where: collectors' records have no common fields; use --job statistics, it reads `events`")
    if request.source == "delta" and request.until == "follow":
        raise UserError("--source delta: the archive ends somewhere; add --to latest or --to TIME")
    if request.source == "delta" and request.begin.startswith(SAVEPOINT):
        raise UserError("--source delta: a savepoint stands at offsets of Kafka's topics; use --from TIME or earliest")
    if request.source == "delta" and request.where:
        raise UserError("--source delta: doesn't go with --where; replay all of it and compare what you want")


def inputs(job: str, topics: TopicMap) -> tuple[Topic, ...]:
    """What a job of the chain reads record by record."""
    match job:
        case "enrichment":
            return topics.telemetry
        case "statistics":
            return (topics["events"],)
        case "detector":
            return (topics["statistics"],)
    raise UserError(f"--job {job}: replay from one of enrichment, statistics, detector; the others only follow them")


def parse_time(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 time; one without a zone is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{text!r} is no time; write e.g. 2026-03-01T06:00:00Z") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def _check_name(name: str, registry: Registry) -> None:
    if name == LIVE or not re.fullmatch(GENERATION, name):
        raise UserError(
            f"--as {name!r}: use up to 31 lower-case letters, digits and hyphens other than `live`, e.g. v2"
        )
    if name in registry.names:
        raise UserError(
            f"--as {name}: there is one already; `kappa replay resume {name}`, drop it, or choose another name"
        )


def _replay(request: Request, starts: Offsets, topics: list[str], log: Log) -> Replay:
    ends = log.ends(topics)
    if request.until not in ("latest", "follow"):
        ends = log.at(topics, parse_time(request.until))
    backlog = dict.fromkeys(topics, 0)
    for (topic, partition), end in ends.items():
        backlog[topic] += max(0, end - starts[topic, partition])
    return Replay(
        start=starts,
        end={} if request.until == "follow" else ends,
        backlog=backlog,
        where=request.where,
        max_rate=request.max_rate,
    )


def _variable(change: str) -> tuple[str, str]:
    """`detector.alarms_per_day=20` as a checked environment variable."""
    found = re.fullmatch(r"(\w+)\.(\w+)=(.*)", change)
    if not found or found[1] not in SETTINGS:
        raise UserError(f"--set {change}: write job.setting=value with a job of {', '.join(SETTINGS)}")
    job, setting, value = found.groups()
    fields = SETTINGS[job].model_fields
    if setting not in fields:
        raise UserError(f"--set {change}: {job} has {', '.join(fields)}")
    try:
        SETTINGS[job](**{setting: _parsed(value)})
    except ValidationError as error:
        raise UserError(f"--set {change}: {describe(error)}") from None
    return f"KAPPA_{job}_{setting}".upper(), value


def _parsed(value: str) -> Any:
    """As pydantic-settings takes it from the environment: lists as JSON."""
    return orjson.loads(value) if value.startswith("[") else value
