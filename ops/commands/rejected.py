"""`kappa rejected`: lists, shows and retries dead letters, the records that could not be processed."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from infra.contract import retries
from infra.errors import UserError
from jobs.runtime.settings import Settings, load_settings
from ops.dead_letters import DeadLetter, OriginalLostError, original, printable, retried_keys
from ops.launcher import topics_of
from ops.redrive import Wanted, chosen, redrive, with_ids
from ops.units import seconds_of

app = typer.Typer(help="Dead letters: list them with the reason, show their bytes, retry them.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 200)
SHOWN_BYTES = 4_000

Bootstrap = Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")]
Generation = Annotated[str | None, typer.Option(help="Whose dead letters. [live]")]
Stage = Annotated[str | None, typer.Option(help="Only from this job, e.g. enrichment, statistics, detector.")]
Code = Annotated[str | None, typer.Option(help="Only with this code, e.g. not_json.")]
Source = Annotated[str | None, typer.Option("--topic", help="Only from this topic, e.g. telemetry.syslog.")]
Since = Annotated[str | None, typer.Option(help="Only those received at most so long ago, e.g. 2h.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("list")
def list_dead_letters(
    *,
    stage: Stage = None,
    code: Code = None,
    topic: Source = None,
    since: Since = None,
    limit: Annotated[int, typer.Option(min=1, help="How many of the newest.")] = 20,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """List dead letters, the newest last.

    Example: kappa rejected list --code not_json --since 2h
    """
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    topics = topics_of(settings)
    wanted = Wanted(stage, code, topic, after_ms=_since_ms(since))
    found = sorted(chosen(settings, topics, wanted), key=lambda letter: letter.time_ms)
    retried = retried_keys(settings.kafka_bootstrap, topics[retries.TOPIC].name)
    rows = [_summary(letter, retried) for letter in found[-limit:]]
    if as_json:
        typer.echo(json.dumps(rows))
        return
    shown = ("id", "stage", "code", "received", "machine", "events", "retried")
    table = Table(*shown, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(str(row[name]) for name in shown))
    console.print(table)
    console.print(f"{len(rows)} of {len(found)} dead letters")


@app.command()
def show(
    letter_id: Annotated[str, typer.Argument(metavar="ID", help="As `list` shows it.")],
    raw: Annotated[bool, typer.Option(help="Write the original bytes to stdout and nothing else.")] = False,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Show a dead letter: the reason, the topic and offset of the original record, its bytes.

    Example: kappa rejected show telemetry.syslog-2-1734-0-not_json
    """
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    letter = with_ids(chosen(settings, topics_of(settings), Wanted()), [letter_id])[-1]
    if raw:
        sys.stdout.buffer.write(_original(settings, letter))
        return
    if as_json:
        typer.echo(json.dumps(letter.record))
        return
    source = letter.record["source"]
    console.print(f"{letter.stage}: {letter.record['code']}: {letter.record['reason']}", markup=False)
    console.print(f"topic {source['topic']}, partition {source['partition']}, offset {source['offset']}")
    console.print(f"received {_time(letter)}, {letter.record['events']} events, {len(letter.value)} bytes:")
    if letter.is_cut:
        console.print("(not all of its bytes: --raw reads them where they stood)", markup=False)
    console.print(printable(letter.value[:SHOWN_BYTES]), markup=False, highlight=False, soft_wrap=True)


def _original(settings: Settings, letter: DeadLetter) -> bytes:
    try:
        return original(settings.kafka_bootstrap, letter)
    except OriginalLostError as error:
        raise UserError(f"{error}: only its beginning was kept, its topic no longer has it") from None


@app.command("retry")
def retry_dead_letters(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Which ones; else chosen by the options.")
    ] = None,
    *,
    stage: Stage = None,
    code: Code = None,
    topic: Source = None,
    since: Since = None,
    everything: Annotated[bool, typer.Option("--all", help="All dead letters.")] = False,
    bootstrap: Bootstrap = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Retry dead letters (redrive): send them through enrichment again, each once, however often this is called.

    Their lateness is that of their first arrival. A record that is rejected again is a new dead letter. Only what came
    from collectors can be retried: a record of an internal topic would come too late for its window. Replay instead.

    Example: kappa rejected retry --code not_collectd --since 1d
    """
    if not (ids or stage or code or topic or since or everything):
        raise UserError("retry: say which: an ID, --stage, --code, --topic, --since or --all")
    settings = load_settings(kafka_bootstrap=bootstrap, generation=generation)
    topics = topics_of(settings)
    found = list(chosen(settings, topics, Wanted(stage, code, topic, after_ms=_since_ms(since))))
    if ids:
        found = with_ids(found, ids)
    with _progress(len(found)) as each:
        done = redrive(settings, topics, found, each)
    if as_json:
        typer.echo(json.dumps(asdict(done)))
        return
    console.print(str(done))


def _since_ms(since: str | None) -> int:
    if since is None:
        return 0
    return int((datetime.now(UTC).timestamp() - seconds_of(since, "--since")) * 1000)


def _summary(letter: DeadLetter, retried: set[str]) -> dict[str, Any]:
    record = letter.record
    return {
        "id": record["id"],
        "stage": letter.stage,
        "code": record["code"],
        "reason": record["reason"],
        "source": record["source"],
        "received": _time(letter),
        "machine": record.get("machine", ""),
        "events": record["events"],
        "retried": letter.retry_key in retried,
    }


def _time(letter: DeadLetter) -> str:
    return datetime.fromtimestamp(letter.time_ms / 1000, UTC).isoformat(timespec="milliseconds")


@contextmanager
def _progress(total: int) -> Iterator[Callable[[], None]]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("dead letters", total=total)
        yield lambda: progress.advance(task)
