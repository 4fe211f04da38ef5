"""`kappa detector explain` and `kappa detector backtest`: the detector alone over recorded statistics."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from connectors.kafka.reader import read_records
from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.detector.control import TOPIC
from jobs.detector.job import for_one_shard
from jobs.detector.settings import DetectorSettings
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.settings import Settings, load_storage_settings
from jobs.table import JOBS
from ops.backtest import orders, views
from ops.backtest.compare import compare
from ops.backtest.explain import AFTER, explain, series_of
from ops.backtest.records import ArchivedRecords, KafkaRecords, Records
from ops.backtest.replay import Alert, Found, Variant, note, replay
from ops.launcher import topics_of
from ops.replay.plan import parse_time

console = Console(width=None if sys.stdout.isatty() else 160)
errors = Console(stderr=True)

HOUR_MS = 3_600_000
NEAR = 12  # windows within which an alert of the same machine is the same one, moved
BEFORE, AFTERWARDS = "before", "after"

Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]
Generation = Annotated[str | None, typer.Option(help="Whose records. [live]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Source(StrEnum):
    """Where recorded statistics are read."""

    kafka = "kafka"
    delta = "delta"


From = Annotated[Source, typer.Option(help="Kafka, or the archive (delta) for what Kafka no longer has.")]
Learn = Annotated[float, typer.Option(min=0.1, help="Hours before it from which the replay learns.")]


def explain_novelty(
    novelty: Annotated[str, typer.Argument(metavar="NOVELTY", help="Its id: `_id` in Elasticsearch.")],
    *,
    learn: Learn = 6.0,
    source: From = Source.kafka,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Say why a novelty was alerted: what was expected, by which series, at other budgets, without operators' orders.

    The records of its partition are replayed through the detector, with the settings of this environment.

    Example: kappa detector explain 6af7bfef32657893ad3598a11635f080
    """
    settings = load_storage_settings(kafka_bootstrap=bootstrap, generation=generation)
    topics = topics_of(settings)
    partition, records = _records_of(settings, topics, novelty)
    own = _settings({}, topics)
    begin, end = records[0]["time_unix_nano"], records[0]["time_unix_nano"] + AFTER * own.window_nano
    recorded = _recorded(settings, topics, source, begin // 1_000_000 - round(learn * HOUR_MS), end // 1_000_000 + 1)
    said = [one for one in orders.read(settings.kafka_bootstrap, topics[TOPIC].name) if one.time_ms * 1_000_000 < end]
    with _progress("records", recorded.sizes().get(partition, 0)) as advance:
        batches = orders.with_orders(recorded.read(partition), said, own)
        found = explain(records[0], batches, own, advance)
    concerning = [one for one in said if one.concerns(records[0]["machine"], series_of(records[0]))]
    if as_json:
        typer.echo(orjson.dumps(views.explanation_json(found, records[-1], concerning)).decode())
    else:
        views.print_explanation(console, found, records[-1], concerning)


def backtest(
    *,
    begin: Annotated[str, typer.Option("--from", help="A time.")],
    until: Annotated[str, typer.Option("--to", help="A time, or latest.")] = "latest",
    changes: Annotated[
        list[str] | None, typer.Option("--set", help="setting=value of the detector; may be repeated.")
    ] = None,
    learn: Learn = 24.0,
    source: From = Source.kafka,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    limit: Annotated[int, typer.Option("-n", min=0, help="How many changes are shown.")] = 50,
    as_json: Json = False,
) -> None:
    """Say which alerts other settings would add, and which would be gone, over recorded statistics.

    Both runs are replays of the detector alone; nothing else starts, and nothing is written. Without --set the second
    run, by this code and environment, is compared with the novelties that were recorded.

    Example: kappa detector backtest --set alarms_per_day=20 --from 2026-03-01T00:00:00Z --to 2026-03-08T00:00:00Z
    """
    settings = load_storage_settings(kafka_bootstrap=bootstrap, generation=generation)
    topics = topics_of(settings)
    given = _parsed(changes or ())
    first, last = parse_time(begin), None if until == "latest" else parse_time(until)
    if last is not None and last <= first:
        raise UserError(f"--to {until}: it must be after --from {begin}")
    before, after = _settings({}, topics), _settings(given, topics)
    variants = [Variant(AFTERWARDS, after)] + ([Variant(BEFORE, before)] if given else [])
    recorded = _recorded(settings, topics, source, first - round(learn * HOUR_MS), last)
    said = orders.read(settings.kafka_bootstrap, topics[TOPIC].name)
    with _progress("records", sum(recorded.sizes().values())) as advance:
        found = replay(recorded, variants, said, advance)
    if found.last_unix_nano is None or found.first_unix_nano is None:
        raise UserError(f"--from {begin}: {topics['statistics'].name} holds nothing since then; see --source delta")
    if not given:
        found.alerts[BEFORE] = _said(settings, topics, first)
    kept = _between(found, first * 1_000_000, found.last_unix_nano if last is None else last * 1_000_000)
    report = views.Report(kept, given, compare(kept.alerts[BEFORE], kept.alerts[AFTERWARDS], NEAR * after.window_nano))
    if as_json:
        typer.echo(orjson.dumps(report.json()).decode())
    else:
        views.print_report(console, report, first * 1_000_000, limit)


def _records_of(settings: Settings, topics: TopicMap, novelty: str) -> tuple[int, list[dict[str, Any]]]:
    """The partition and the records of a novelty, in their order. Raises UserError if it isn't there."""
    topic = topics["novelties"].name
    found = [
        (partition, record)
        for partition, record in read_records(settings.kafka_bootstrap, topic)
        if record.get("id") == novelty and "score" in record
    ]
    if not found:
        raise UserError(f"NOVELTY {novelty!r}: {topic} holds none of this id; it is the `_id` in Elasticsearch")
    return found[0][0], [record for _, record in found]


def _said(settings: Settings, topics: TopicMap, begin_ms: int) -> list[Alert]:
    """The novelties that were recorded since then."""
    alerts: dict[str, Alert] = {}
    topic = topics["novelties"].name
    known = KafkaRecords.between(settings.kafka_bootstrap, topic, begin_ms, None)
    for partition in known.sizes():
        for batch in known.read(partition):
            note(alerts, [one for one in map(orjson.loads, batch) if "score" in one])
    return sorted(alerts.values(), key=lambda alert: (alert.time_unix_nano, alert.machine, alert.id))


def _between(found: Found, begin: int, end: int) -> Found:
    alerts = {
        name: [one for one in of_one if begin <= one.time_unix_nano <= end] for name, of_one in found.alerts.items()
    }
    return found._replace(alerts=alerts)


def _recorded(settings: Settings, topics: TopicMap, source: Source, begin_ms: int, end_ms: int | None) -> Records:
    topic = topics["statistics"].name
    if source == Source.delta:
        return ArchivedRecords.between(settings, topic, begin_ms, end_ms)
    return KafkaRecords.between(settings.kafka_bootstrap, topic, begin_ms, end_ms)


def _parsed(changes: list[str] | tuple[str, ...]) -> dict[str, str]:
    """By setting its text. Raises UserError for what is no setting=value."""
    found = {}
    for change in changes:
        name, equals, value = change.removeprefix("detector.").partition("=")
        if not equals or not name:
            raise UserError(f"--set {change!r}: write setting=value, such as alarms_per_day=20")
        found[name] = value
    return found


def _settings(changes: Mapping[str, str], topics: TopicMap) -> DetectorSettings:
    """The detector's settings of one shard: of the environment, with these changes."""
    (job,) = (job for job in JOBS if job.name == "detector")
    own = load_job_settings(job, changes)
    assert isinstance(own, DetectorSettings)
    return for_one_shard(own, topics)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Any]:
    """Shows how many of so many things are done, on a terminal's standard error; gives what is to be told."""
    columns = (TextColumn("{task.completed:,.0f} of {task.total:,.0f} {task.description}"), BarColumn())
    with Progress(*columns, TimeRemainingColumn(), console=errors, transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda done: bar.update(task, completed=done)
