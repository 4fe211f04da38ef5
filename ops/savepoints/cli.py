"""`kappa savepoint`: a job's checkpoint, offsets and markers, kept for later."""

import json
import sys
import threading
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from infra.contract.topics import load_topics
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.logs import configure_logs
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings, load_storage_settings
from jobs.table import JOBS
from ops.launcher import jobs_of, registry_for
from ops.repeat import repeat
from ops.replay.registry import Registry
from ops.savepoints import rotation, savepoints

app = typer.Typer(help="Keep a job as it stands, and start from there again.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 160)
errors = Console(stderr=True)

Name = Annotated[str, typer.Argument(help="A savepoint.")]
Generation = Annotated[str | None, typer.Option(help="Whose job. [live]")]


@app.command()
def create(
    name: Name,
    job: Annotated[str, typer.Option(help=", ".join(one.name for one in JOBS if one.is_replayable))],
    generation: Generation = None,
) -> None:
    """Keep a job as of its last batch. It may run: it doesn't notice.

    Example: kappa savepoint create before-upgrade --job detector
    """
    settings = load_storage_settings(generation=generation)
    spark = open_session("kappa.savepoint", settings)
    try:
        saved = savepoints.create(name, job, settings, spark)
    finally:
        spark.stop()
    _tell(saved)


@app.command()
def rotate(
    keep: Annotated[int, typer.Option(min=1, help="How many of each job are kept; older ones are deleted.")] = 7,
    jobs: Annotated[list[str] | None, typer.Option("--job", help="May be repeated. [all that can be saved]")] = None,
    generation: Generation = None,
    every: Annotated[str | None, typer.Option(help="Do it again and again, e.g. 1d, until SIGTERM.")] = None,
) -> None:
    """Keep each job as of its last batch, and delete older savepoints that this command has taken. Run it daily.

    Savepoints that people have named stay.

    Example: kappa savepoint rotate --keep 7
    """
    settings = load_storage_settings(generation=generation)
    configure_logs(settings)
    running = jobs_of(settings, registry_for(settings, threading.Event()))
    wanted = jobs or [name for name in running if JOBS[name].is_replayable]
    for name in wanted:
        savepoints.check_saveable(name)
    repeat(every, lambda: _rotate(wanted, keep, settings))


def _rotate(jobs: Sequence[str], keep: int, settings: Settings) -> None:
    spark = open_session("kappa.savepoint", settings)
    try:
        for saved in rotation.rotate(jobs, keep, settings, spark, datetime.now(UTC)):
            _tell(saved)
    finally:
        spark.stop()


@app.command()
def delete(name: Name) -> None:
    """Delete a savepoint.

    Example: kappa savepoint delete before-upgrade
    """
    savepoints.delete(name, load_storage_settings())
    errors.print(f"{name} is deleted")


@app.command("list")
def list_savepoints(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """List the savepoints.

    Example: kappa savepoint list
    """
    found = savepoints.every(load_storage_settings())
    if as_json:
        typer.echo(json.dumps([saved.model_dump(mode="json") for saved in found], indent=1))
        return
    table = Table("savepoint", "job", "generation", "batch", "settled", box=None, header_style="bold")
    for saved in found:
        table.add_row(saved.name, saved.job, saved.generation, str(saved.batch), "yes" if saved.is_settled else "no")
    console.print(table)


@app.command()
def restore(name: Name, generation: Generation = None) -> None:
    """Put a savepoint in place as its job's checkpoint. The job must be stopped.

    Into its own generation only if the job has written nothing since. To go on from an older one, start a generation:
    `kappa replay start --from savepoint:NAME`.

    Example: kappa savepoint restore before-upgrade
    """
    settings = load_storage_settings()
    saved = savepoints.find(name, settings)
    settings = settings.model_copy(update={"generation": generation or saved.generation})
    registry = Registry.read(settings.kafka_bootstrap)
    topics = registry.topics(settings.generation, load_topics(settings.topics_file))
    changes = registry.find(settings.generation).changes(saved.job)
    savepoints.restore(saved, settings, load_job_settings(JOBS[saved.job], changes), topics)
    errors.print(f"{saved.job} of {settings.generation} goes on after batch {saved.batch}")


@app.command()
def export(name: Name, file: Annotated[Path, typer.Argument(help="A new file, e.g. detector.tgz.")]) -> None:
    """Write a savepoint into one file.

    Example: kappa savepoint export before-upgrade before-upgrade.tgz
    """
    settings = load_storage_settings()
    savepoints.export(savepoints.find(name, settings), settings, file)
    errors.print(f"{file}: {file.stat().st_size:,} bytes")


@app.command("import")
def import_(
    file: Annotated[Path, typer.Argument(help="What `export` has written.")],
    name: Annotated[str | None, typer.Option("--as", help="Another name. [the one that it has]")] = None,
) -> None:
    """Read a savepoint from a file.

    Example: kappa savepoint import before-upgrade.tgz
    """
    _tell(savepoints.take_in(file, name, load_storage_settings()))


def _tell(saved: savepoints.Savepoint) -> None:
    errors.print(f"{saved.name}: {saved.job} of {saved.generation} after batch {saved.batch}, {saved.shards} shards")
