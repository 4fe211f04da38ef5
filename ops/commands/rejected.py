"""`kappa rejected`: lists, shows and retries dead letters, the records that could not be processed."""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from infra.contract.topics import TopicMap, parse_duration
from infra.errors import UserError
from jobs.enrichment import retry
from jobs.runtime.settings import Settings, load_settings
from jobs.table import JOBS
from ops.dead_letters import (
    DeadLetter,
    OriginalLostError,
    Redrive,
    dead_letters,
    original,
    printable,
    retried_keys,
)
from ops.launcher import topics_of

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
    found = sorted(_chosen(settings, topics, Wanted(stage, code, topic, since)), key=lambda letter: letter.time_ms)
    retried = retried_keys(settings.kafka_bootstrap, topics[retry.TOPIC].name)
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
    letter = _by_id(_chosen(settings, topics_of(settings), Wanted()), letter_id)[-1]
    if raw:
        sys.stdout.buffer.write(original(settings.kafka_bootstrap, letter))
        return
    if as_json:
        typer.echo(json.dumps(letter.record))
        return
    source = letter.record["source"]
    console.print(f"{letter.stage}: {letter.record['code']}: {letter.record['reason']}", markup=False)
    console.print(f"topic {source['topic']}, partition {source['partition']}, offset {source['offset']}")
    console.print(f"received {_time(letter)}, {letter.record['events']} events, {len(letter.value)} bytes:")
    console.print(printable(letter.value[:SHOWN_BYTES]), markup=False, highlight=False, soft_wrap=True)


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
    found = list(_chosen(settings, topics, Wanted(stage, code, topic, since)))
    if ids:
        found = [letter for wanted in ids for letter in _by_id(found, wanted)]
    _check_retriable(topics, found)
    counts = _redrive(settings, topics, found)
    if as_json:
        typer.echo(json.dumps(counts))
        return
    sent, before, others = counts.values()
    console.print(f"{sent} sent; {before} were sent before; {others} are not from a telemetry topic")


def _check_retriable(topics: TopicMap, found: Sequence[DeadLetter]) -> None:
    """Raises UserError if none of the chosen dead letters came from a collector: it says what to do instead."""
    if not found or any(letter.record["source"]["topic"] in _telemetry(topics) for letter in found):
        return
    letter = found[0]
    job = letter.stage if letter.stage in JOBS.names() and JOBS[letter.stage].is_replayable else "enrichment"
    raise UserError(
        f"retry: {letter.record['id']} is from {letter.record['source']['topic']}, which {letter.stage} reads: only "
        "what collectors wrote can be retried, as the window of this record is over. Mend its cause, then replay: "
        f"kappa replay start --job {job} --from TIME --as NAME"
    )


def _telemetry(topics: TopicMap) -> set[str]:
    return {declared.name for declared in topics.telemetry}


def _redrive(settings: Settings, topics: TopicMap, found: Sequence[DeadLetter]) -> dict[str, int]:
    """Retry the dead letters that come from a telemetry topic; returns how many were sent and how many were not."""
    known = _telemetry(topics)
    usable = [letter for letter in found if letter.record["source"]["topic"] in known]
    try:
        with _progress(len(usable)) as each:
            sent = Redrive(settings.kafka_bootstrap, topics[retry.TOPIC]).send(usable, each)
    except OriginalLostError as error:
        raise UserError(f"{error}: only its beginning was kept, its topic no longer has it: nothing was sent") from None
    return {"sent": sent, "sent_before": len(usable) - sent, "not_telemetry": len(found) - len(usable)}


class Wanted(NamedTuple):
    """Which dead letters: those that meet all that is given."""

    stage: str | None = None
    code: str | None = None
    topic: str | None = None
    since: str | None = None

    def is_met_by(self, letter: DeadLetter, after_ms: int) -> bool:
        """Whether a dead letter is meant; `after_ms` is what `since` says."""
        record = letter.record
        return (
            self.stage in (None, letter.stage)
            and self.code in (None, record["code"])
            and self.topic in (None, record["source"]["topic"])
            and letter.time_ms >= after_ms
        )


def _chosen(settings: Settings, topics: TopicMap, wanted: Wanted) -> Iterator[DeadLetter]:
    if wanted.stage not in (None, *JOBS.names()):
        raise UserError(f"--stage={wanted.stage!r}: there is no such job; there are {', '.join(JOBS.names())}")
    after = _since_ms(wanted.since)
    letters = dead_letters(settings.kafka_bootstrap, topics["events.rejected"].name)
    return (letter for letter in letters if wanted.is_met_by(letter, after))


def _since_ms(since: str | None) -> int:
    if since is None:
        return 0
    try:
        age = parse_duration(since)
    except ValueError as error:
        raise UserError(f"--since={since!r}: {error}") from None
    return int((datetime.now(UTC) - age).timestamp() * 1000)


def _by_id(found: Iterable[DeadLetter], letter_id: str) -> list[DeadLetter]:
    """The dead letters with this id, oldest first: more than one if a retry was rejected too."""
    matching = [letter for letter in found if letter.record["id"] == letter_id]
    if not matching:
        raise UserError(f"dead letter {letter_id!r}: there is none; `kappa rejected list` shows them")
    return matching


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
