"""`kappa rejected`: what could not be used, why, and again after a fix."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from infra.contract.topics import TopicMap, parse_duration
from infra.errors import UserError
from jobs.enrichment import retry
from jobs.runtime.settings import Settings, load_settings
from ops.launcher import topics_of
from ops.rejected import GoneError, Rejection, Retry, original, printable, rejections, retried_places

app = typer.Typer(help="Records that could not be used: their bytes, the reason, and again.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 200)
SHOWN_BYTES = 4_000

Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]
Generation = Annotated[str | None, typer.Option(help="Whose rejections. [live]")]
Code = Annotated[str | None, typer.Option(help="Only with this code, e.g. not_json.")]
Source = Annotated[str | None, typer.Option("--topic", help="Only from this topic, e.g. telemetry.syslog.")]
Since = Annotated[str | None, typer.Option(help="Only those that came so long ago or less, e.g. 2h.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_rejections(
    *,
    code: Code = None,
    topic: Source = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest.")] = 20,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """List rejections, the newest last.

    Example: kappa rejected list --code not_json --since 2h
    """
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    topics = topics_of(settings)
    found = sorted(_chosen(settings, topics, code, topic, since), key=lambda rejection: rejection.time_ms)
    sent = retried_places(settings.kafka_bootstrap, topics[retry.TOPIC].name)
    rows = [_summary(rejection, sent) for rejection in found[-limit:]]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    table = Table("id", "code", "received", "machine", "events", "sent again", box=None, header_style="bold")
    for row in rows:
        table.add_row(*(str(row[name]) for name in ("id", "code", "received", "machine", "events", "retried")))
    console.print(table)
    console.print(f"{len(rows)} of {len(found)} rejections")


@app.command()
def show(
    rejection_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")],
    raw: Annotated[bool, typer.Option(help="Write the original bytes to stdout and nothing else.")] = False,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Show a rejection: the reason, where the record stands, its original bytes.

    Example: kappa rejected show telemetry.syslog-2-1734-0-not_json
    """
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    rejection = _by_id(_chosen(settings, topics_of(settings)), rejection_id)[-1]
    if raw:
        sys.stdout.buffer.write(original(settings.kafka_bootstrap, rejection))
        return
    if as_json:
        typer.echo(json.dumps(rejection.record))
        return
    source = rejection.record["source"]
    console.print(f"{rejection.record['code']}: {rejection.record['reason']}", markup=False)
    console.print(f"topic {source['topic']}, partition {source['partition']}, offset {source['offset']}")
    console.print(f"received {_time(rejection)}, {rejection.record['events']} events, {len(rejection.value)} bytes:")
    console.print(printable(rejection.value[:SHOWN_BYTES]), markup=False, highlight=False, soft_wrap=True)


@app.command("retry")
def retry_rejections(
    ids: Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Those; otherwise by the options.")] = None,
    *,
    code: Code = None,
    topic: Source = None,
    since: Since = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Send rejected records through enrichment again, each rejection once, however often this is called.

    They are judged by the time at which they first came. One that is rejected again can be sent again.

    Example: kappa rejected retry --code not_collectd --since 1d
    """
    if not (ids or code or topic or since or everything):
        raise UserError("retry: say which: an ID, --code, --topic, --since or --all")
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    topics = topics_of(settings)
    found = list(_chosen(settings, topics, code, topic, since))
    if ids:
        found = [rejection for wanted in ids for rejection in _by_id(found, wanted)]
    known = {declared.name for declared in topics.telemetry}
    usable = [rejection for rejection in found if rejection.record["source"]["topic"] in known]
    try:
        with _progress(len(usable)) as each:
            sent = Retry(settings.kafka_bootstrap, topics[retry.TOPIC]).send(usable, each)
    except GoneError as error:
        raise UserError(f"{error}: only its beginning was kept, and it has left its topic: nothing was sent") from None
    counts = {"sent": sent, "sent_before": len(usable) - sent, "not_telemetry": len(found) - len(usable)}
    if as_json:
        typer.echo(json.dumps(counts))
        return
    console.print(f"{sent} sent; {counts['sent_before']} were before; {counts['not_telemetry']} aren't telemetry")


def _chosen(
    settings: Settings, topics: TopicMap, code: str | None = None, topic: str | None = None, since: str | None = None
) -> Iterator[Rejection]:
    after = _since_ms(since)
    for rejection in rejections(settings.kafka_bootstrap, topics["events.rejected"].name):
        record = rejection.record
        if code in (None, record["code"]) and topic in (None, record["source"]["topic"]) and rejection.time_ms >= after:
            yield rejection


def _since_ms(since: str | None) -> int:
    if since is None:
        return 0
    try:
        age = parse_duration(since)
    except ValueError as error:
        raise UserError(f"--since={since!r}: {error}") from None
    return int((datetime.now(UTC) - age).timestamp() * 1000)


def _by_id(found: Iterable[Rejection], rejection_id: str) -> list[Rejection]:
    """The rejections of this id, oldest first: more than one if a retry was rejected too."""
    matching = [rejection for rejection in found if rejection.record["id"] == rejection_id]
    if not matching:
        raise UserError(f"rejection {rejection_id!r}: there is none; `kappa rejected list` shows them")
    return matching


def _summary(rejection: Rejection, sent: set[str]) -> dict[str, Any]:
    record = rejection.record
    return {
        "id": record["id"],
        "code": record["code"],
        "reason": record["reason"],
        "source": record["source"],
        "received": _time(rejection),
        "machine": record.get("machine", ""),
        "events": record["events"],
        "retried": rejection.place in sent,
    }


def _time(rejection: Rejection) -> str:
    return datetime.fromtimestamp(rejection.time_ms / 1000, UTC).isoformat(timespec="milliseconds")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("rejections", total=total)
        yield lambda: progress.advance(task)
