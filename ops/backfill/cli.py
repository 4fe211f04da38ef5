"""`kappa backfill`: runs the jobs over the archive as a batch, into tables of a generation of its own."""

import json
import sys
import time
from enum import StrEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from jobs.runtime.logs import configure_logs
from jobs.runtime.session import session
from jobs.runtime.settings import load_storage_settings
from ops.backfill.backfill import Note
from ops.backfill.run import Report, Request, run

app = typer.Typer()
errors = Console(stderr=True)


class Source(StrEnum):
    """Where a backfill reads the log."""

    delta = "delta"


@app.command()
def backfill(
    *,
    name: Annotated[str, typer.Option("--as", help="The generation whose Delta tables it fills, e.g. y2025.")],
    source: Annotated[Source, typer.Option(help="Where to read the log: the archive.")] = Source.delta,
    begin: Annotated[str, typer.Option("--from", help="A time, or earliest.")] = "earliest",
    until: Annotated[str, typer.Option("--to", help="A time, or latest.")] = "latest",
    changes: Annotated[list[str] | None, typer.Option("--set", help="job.setting=value; may be repeated.")] = None,
    step_records: Annotated[
        int, typer.Option(min=1, help="Records that are read at once; after each step it can be resumed.")
    ] = 200_000,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout, no progress.")] = False,
) -> None:
    """Run all jobs over the archived telemetry of a time as a batch, without Kafka in between.

    The records are those that the jobs write through Kafka. They go into Delta tables of a generation of their own.
    What is cut goes on where it was by the same command. `kappa replay drop` deletes them again.

    Example: kappa backfill --source delta --from 2025-01-01 --to 2026-01-01 --as y2025
    """
    settings = load_storage_settings()
    configure_logs(settings)
    request = Request(name, begin, until, tuple(changes or ()), step_records)
    began = time.monotonic()
    progress = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} records  {task.fields[reached]}"),
        TimeRemainingColumn(),
        console=errors,
        disable=as_json,
    )
    with session("kappa.backfill", settings) as spark, progress as bar:
        note = run(request, settings, spark, _reports(bar, name, quiet=as_json))
    seconds = time.monotonic() - began
    if as_json:
        typer.echo(json.dumps({"generation": name, "seconds": round(seconds, 1), "written": note.written}))
        return
    written = ", ".join(f"{count:,} in {topic}" for topic, count in sorted(note.written.items()))
    errors.print(f"{name}: {written}; {settings.model_copy(update={'generation': name}).delta_of('')}", soft_wrap=True)


def _reports(bar: Progress, name: str, *, quiet: bool) -> Report:
    task = bar.add_task(name, total=0, reached="")

    def report(done: int, total: int, note: Note) -> None:
        reached = f"reached {time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(note.watermark_ms / 1000))}"
        bar.update(task, completed=done, total=total, reached=reached)
        if not quiet and not sys.stderr.isatty():
            errors.print(f"{name}: {done:,} of {total:,} records, {reached}", soft_wrap=True)

    return report
