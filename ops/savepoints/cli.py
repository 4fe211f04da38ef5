"""`kappa savepoint`: checkpoints, offsets and markers of a job, or of all jobs at once, kept for later."""

import json
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from connectors.kafka.access import reach
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.logs import configure_logs
from jobs.runtime.session import session
from jobs.runtime.settings import Settings, load_storage_settings
from jobs.table import JOBS
from ops.launcher import jobs_of, registry_for
from ops.repeat import repeat
from ops.replay.registry import Registry
from ops.savepoints import chain, rotation, savepoints
from ops.savepoints.saved import ChainSavepoint, Savepoint

app = typer.Typer(help="Keep jobs as they stand, and go on from there again.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 160)
errors = Console(stderr=True)
SESSION = "kappa.savepoint"

Name = Annotated[str, typer.Argument(help="A savepoint.")]
Generation = Annotated[str | None, typer.Option(help="Whose job. [live]")]


@app.command()
def create(
    name: Name,
    *,
    job: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(one.name for one in JOBS if one.is_replayable)}.")
    ] = None,
    every_job: Annotated[bool, typer.Option("--all", help="All jobs at once, as of one consistent cut.")] = False,
    generation: Generation = None,
    keep: Annotated[
        int | None, typer.Option(min=1, help="With --all: take NAME.<generation>.<time>, keep so many of them.")
    ] = None,
    every: Annotated[str | None, typer.Option(help="With --keep: again and again, e.g. 1d, until SIGTERM.")] = None,
) -> None:
    """Keep a job, or all jobs at once, as of a batch. They may run: they don't notice.

    Example: kappa savepoint create before-upgrade --all
    """
    _check_options(job, every_job, keep, every)
    settings = load_storage_settings(generation=generation)
    configure_logs(settings)
    if keep is None:
        _tell(_all_jobs(name, settings) if job is None else _one_job(name, job, settings))
        return
    kept = keep
    repeat(
        every,
        lambda: _tell(
            rotation.rotate_all(name, kept, settings, lambda one: _all_jobs(one, settings), datetime.now(UTC))
        ),
    )


def _check_options(job: str | None, every_job: bool, keep: int | None, every: str | None) -> None:
    if (job is None) != every_job:
        raise UserError("kappa savepoint create: add --all, or --job with the name of one")
    if keep and job:
        raise UserError("--keep: goes with --all; of single jobs: kappa savepoint rotate")
    if every and not keep:
        raise UserError("--every: add --keep, as the savepoints would fill the disk")


@contextmanager
def _session(settings: Settings) -> Iterator[SparkSession]:
    """Spark's session, once a broker has let us in: Spark takes long to start."""
    reach(settings.kafka_bootstrap)
    with session(SESSION, settings) as spark:
        yield spark


def _one_job(name: str, job: str, settings: Settings) -> Savepoint:
    with _session(settings) as spark:
        return savepoints.create(name, job, settings, spark)


def _all_jobs(name: str, settings: Settings) -> ChainSavepoint:
    with _session(settings) as spark:
        return chain.create_of_running(name, settings, spark)


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
    with _session(settings) as spark:
        for saved in rotation.rotate(jobs, keep, settings, spark, datetime.now(UTC)):
            _tell(saved)


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
        typer.echo(json.dumps([_facts(saved) for saved in found], indent=1))
        return
    table = Table("savepoint", "job", "generation", "taken", "batch", "bytes", box=None, header_style="bold")
    for saved in found:
        batch = "" if isinstance(saved, ChainSavepoint) else str(saved.batch)
        table.add_row(saved.name, saved.job, saved.generation, saved.taken, batch, f"{saved.bytes:,}")
    console.print(table)


def _facts(saved: Savepoint | ChainSavepoint) -> dict[str, Any]:
    return saved.model_dump(mode="json", exclude={"files"}) | {"bytes": saved.bytes}


@app.command()
def verify(name: Name, as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Read every file of a savepoint and compare it with its size and SHA-256. Exits with 2 if one differs.

    Example: kappa savepoint verify before-upgrade
    """
    settings = load_storage_settings()
    saved = savepoints.read(name, settings)
    count = chain.verify(saved, settings)
    if as_json:
        typer.echo(json.dumps({"savepoint": name, "files": count, "bytes": saved.bytes}))
    else:
        errors.print(f"{name}: {count:,} files, {saved.bytes:,} bytes, all as they were", highlight=False)


@app.command()
def restore(name: Name, generation: Generation = None) -> None:
    """Put a savepoint in place as the checkpoint of its job, or of all jobs. They must be stopped.

    In its own generation a job doesn't write again what it has written since: it reads that part of the log for its
    state alone. Into another generation: `kappa replay start --from savepoint:NAME`.

    Example: kappa savepoint restore before-upgrade
    """
    settings = load_storage_settings()
    saved = savepoints.read(name, settings)
    settings = settings.model_copy(update={"generation": generation or saved.generation})
    registry = Registry.read(settings.kafka_bootstrap)
    topics = registry.topics(settings.generation, load_topics(settings.topics_file))
    if isinstance(saved, ChainSavepoint):
        chain.restore(saved, settings, registry, topics)
        errors.print(f"{', '.join(saved.jobs)} of {settings.generation} go on from {name}")
        return
    changes = registry.find(settings.generation).changes(saved.job)
    savepoints.restore(saved, settings, load_job_settings(JOBS[saved.job], changes), topics)
    errors.print(f"{saved.job} of {settings.generation} goes on after batch {saved.batch}")


@app.command()
def export(name: Name, file: Annotated[Path, typer.Argument(help="A new file, e.g. detector.tgz.")]) -> None:
    """Write a savepoint into one file.

    Example: kappa savepoint export before-upgrade before-upgrade.tgz
    """
    settings = load_storage_settings()
    savepoints.export(savepoints.read(name, settings), settings, file)
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


def _tell(saved: Savepoint | ChainSavepoint) -> None:
    if isinstance(saved, ChainSavepoint):
        errors.print(
            f"{saved.name}: {', '.join(saved.jobs)} of {saved.generation}, {saved.bytes:,} bytes", soft_wrap=True
        )
        return
    errors.print(f"{saved.name}: {saved.job} of {saved.generation} after batch {saved.batch}, {saved.shards} shards")
