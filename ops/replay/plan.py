"""Makes the plan of a generation from the options of `kappa replay start`: offsets, settings, topics."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from connectors.kafka.offsets import Log
from infra.contract.jobs import Topics
from infra.contract.offsets import Offsets
from infra.contract.topics import GENERATION, LIVE, Topic, TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import CHAIN, Generation, Platform, Registry

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
    platform: Platform = "processes"
    image: str | None = None
    ref: str | None = None
    without: Sequence[str] = ()

    @property
    def is_from_time(self) -> bool:
        """Whether the replay begins at a time, not at the earliest offset or a savepoint."""
        return self.begin != "earliest" and not self.begin.startswith(SAVEPOINT)


def plan(
    request: Request, settings: Settings, registry: Registry, log: Log, start: Offsets | None = None
) -> Generation:
    """The plan of the requested generation; nothing is written yet. `start` are the offsets of a savepoint.

    Raises UserError naming the option that is invalid.
    """
    check_name(request.name, registry.names)
    base = request.base or registry.promotion.generation
    registry.find(base)
    read = registry.topics(base, load_topics(settings.topics_file))
    topics = [topic.name for topic in inputs(request.job, read)]
    running = {name for name in (*CHAIN, *settings.optional_jobs) if JOBS[name].follows_replays}
    jobs = _without(request.without, JOBS.with_followers(request.job, read, running))
    _check_combination(request)
    begin_ms = parse_time(request.begin) if request.is_from_time else None
    if start is None:
        start = log.starts(topics) if begin_ms is None else log.at(topics, begin_ms)
    from_archive = request.source == "delta"
    return Generation(
        name=request.name,
        base=base,
        jobs=jobs,
        begin=request.begin,
        until=request.until,
        begin_ms=begin_ms,
        settings=parse_changes(request.changes, jobs),
        source=request.source,
        platform=request.platform,
        image=request.image,
        ref=request.ref,
        state="restoring" if from_archive else "replaying",
        replay=Replay(max_rate=request.max_rate) if from_archive else _replay(request, start, topics, log),
    )


def _check_combination(request: Request) -> None:
    if request.where and Topics.TELEMETRY in JOBS[request.job].reads:
        raise UserError("--where: collectors' records have no common fields; use --job statistics, it reads `events`")
    if request.source == "delta" and request.until == "follow":
        raise UserError("--source delta: the archive can't be followed; add --to latest or --to TIME")
    if request.source == "delta" and request.begin.startswith(SAVEPOINT):
        raise UserError("--source delta: a savepoint has offsets of Kafka's topics; use --from TIME or earliest")
    if request.source == "delta" and request.where:
        raise UserError("--source delta: doesn't go with --where; replay all of it and compare what you want")


def _without(unwanted: Collection[str], jobs: Sequence[str]) -> tuple[str, ...]:
    """The jobs but for the unwanted ones. Raises UserError if one of these isn't for readers alone."""
    possible = [name for name in jobs if JOBS[name].is_for_readers]
    if refused := next((name for name in unwanted if name not in possible), None):
        raise UserError(f"--without {refused}: leave out {' or '.join(possible)}; the others read what it writes")
    return tuple(name for name in jobs if name not in unwanted)


def inputs(job: str, topics: TopicMap) -> tuple[Topic, ...]:
    """The topics that a job reads as its input.

    Raises UserError if no replay can begin with it.
    """
    replayable = [one.name for one in JOBS if one.is_replayable]
    if job not in replayable:
        raise UserError(f"--job {job}: replay from one of {', '.join(replayable)}; the others only follow them")
    return JOBS[job].inputs(topics)


def parse_time(text: str) -> int:
    """Milliseconds since the epoch of an ISO 8601 time; one without a zone is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UserError(f"{text!r} is no time; write e.g. 2026-03-01T06:00:00Z") from None
    return int((time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() * 1000)


def check_name(name: str, taken: Collection[str] = ()) -> None:
    """Raises UserError unless a new generation can have this name."""
    if name == LIVE or not re.fullmatch(GENERATION, name):
        raise UserError(
            f"--as {name!r}: use up to 31 lower-case letters, digits and hyphens other than `live`, e.g. v2"
        )
    if name in taken:
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


def parse_changes(options: Sequence[str], jobs: Collection[str]) -> dict[str, str]:
    """The changed settings, `job.setting` -> text, from options such as `detector.alarms_per_day=20`, validated."""
    by_job: dict[str, dict[str, str]] = {}
    for option in options:
        found = re.fullmatch(r"(\w+)\.(\w+)=(.*)", option)
        with_settings = [name for name in jobs if JOBS[name].settings]
        if not found or found[1] not in with_settings:
            raise UserError(f"--set {option}: write job.setting=value with a job of {', '.join(with_settings)}")
        by_job.setdefault(found[1], {})[found[2]] = found[3]
    for job, changes in by_job.items():
        try:
            load_job_settings(JOBS[job], changes)
        except UserError as error:
            raise UserError(f"--set {error}") from None
    return {f"{job}.{name}": text for job, changes in by_job.items() for name, text in changes.items()}
