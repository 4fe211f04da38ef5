"""`kappa upgrade`: what goes before, during and after a change of the image."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console

from infra.contract.jobs import Job
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.job import job_of
from jobs.runtime.logs import configure_logs
from jobs.runtime.preflight import reach_broker
from jobs.runtime.session import session
from jobs.runtime.settings import Settings, load_settings, load_storage_settings
from jobs.table import JOBS
from ops.launcher import jobs_of, registry_for
from ops.savepoints import chain, rotation, savepoints
from ops.savepoints.saved import ChainSavepoint
from ops.units import seconds_of
from ops.upgrade import back as way_back
from ops.upgrade import mark as marks
from ops.upgrade.deployments import Namespace
from ops.upgrade.looks import Chain
from ops.upgrade.mark import Mark
from ops.upgrade.watch import Outcome, measure
from ops.upgrade.watch import watch as watch_chain

app = typer.Typer(help="Guard an upgrade: note what was, watch the new image, go back.", no_args_is_help=True)
errors = Console(stderr=True)
MEASURED_SECONDS = 60.0  # the archive has a batch a minute
KEPT = 2  # savepoints of upgrades
REPORT_SECONDS = 15.0
STOP_SECONDS = 300.0  # a batch may be long

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Generation = Annotated[str | None, typer.Option(help="Whose jobs. [live]")]


class Mode(StrEnum):
    """What an upgrade can go back to."""

    checkpoint = "checkpoint"
    savepoint = "savepoint"


@app.command()
def begin(
    mode: Annotated[
        Mode, typer.Option(help="Go back to the checkpoints as they are, or to a savepoint that is taken now.")
    ] = Mode.checkpoint,
    job: Annotated[
        list[str] | None, typer.Option("--job", help="Only this application; may be repeated. [all that run]")
    ] = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Note what the chain is before its image is changed, while it runs; with --mode savepoint take one of all jobs.

    Takes a minute, in which the usual lag is measured. Run it by the former image.

    Example: kappa upgrade begin --mode savepoint
    """
    applications = {one.runs_in for one in JOBS}
    if unknown := sorted({*(job or ())} - applications):
        raise UserError(f"--job {unknown[0]}: there is none; there are {', '.join(sorted(applications))}")
    needs_storage = mode is Mode.savepoint
    settings = _reached((load_storage_settings if needs_storage else load_settings)(generation=generation))
    with _chain(settings, lambda one: not job or one.runs_in in job) as seen:
        before = marks.before_of(measure(seen.look, MEASURED_SECONDS))
    if not before:
        raise UserError(
            f"generation={settings.generation}: no job has ever committed a batch; there is nothing to guard"
        )
    name = _save(settings) if needs_storage else None
    mark = Mark(mode=mode.value, taken=savepoints.now(), savepoint=name, queries=before)
    marks.write(mark, settings)
    saved = f", savepoint {name}" if name else ""
    _tell(mark.model_dump(), f"{len(before)} queries are noted{saved}: now start the new image", as_json)


def _reached(settings: Settings) -> Settings:
    """The settings of a broker that answers; the same upgrade may start it again. Raises UserError if none does."""
    configure_logs(settings)
    reach_broker(settings, set(), threading.Event())
    return settings


def _save(settings: Settings) -> str:
    def create(name: str) -> ChainSavepoint:
        return chain.create_of_running(name, settings, spark)

    with session("kappa.upgrade", settings) as spark:
        return rotation.rotate_all("upgrade", KEPT, settings, create, datetime.now(UTC)).name


@contextmanager
def _chain(settings: Settings, wanted: Callable[[Job], bool]) -> Iterator[Chain]:
    """Those of the generation's jobs that are wanted, to be looked at."""
    registry = registry_for(settings, threading.Event())
    jobs = [name for name in jobs_of(settings, registry) if wanted(JOBS[name])]
    seen = Chain(settings, registry.topics(settings.generation, load_topics(settings.topics_file)), jobs)
    try:
        yield seen
    finally:
        seen.close()


@app.command()
def watch(
    deadline: Annotated[str, typer.Option(help="How long the new image may need, e.g. 10m.")] = "10m",
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Wait until the new image is at work: each query goes on, and its lag falls. Prints one line that says why.

    Exits with 0 once it is ready, with 1 if it isn't by the deadline, or is started again and again.

    Example: kappa upgrade watch --deadline 10m
    """
    seconds = seconds_of(deadline, "--deadline")
    settings = _reached(load_settings(generation=generation))
    mark = marks.read(settings)
    noted = {job_of(query) for query in mark.queries}
    with _chain(settings, lambda one: one.name in noted) as seen:
        outcome = watch_chain(mark, seen.look, seconds, _reporter())
    _tell(_facts(outcome), str(outcome), as_json)
    raise typer.Exit(not outcome.is_ready)


def _reporter() -> Callable[[str], None]:
    """Says what is waited for, now and then."""
    due = 0.0

    def report(why: str) -> None:
        nonlocal due
        if time.monotonic() >= due:
            errors.print(why, soft_wrap=True, highlight=False, markup=False)
            due = time.monotonic() + REPORT_SECONDS

    return report


def _facts(outcome: Outcome) -> dict[str, Any]:
    stands = outcome.last.stands if outcome.last else {}
    return {
        "ready": outcome.is_ready,
        "why": outcome.why,
        "seconds": round(outcome.seconds, 1),
        "queries": {query: asdict(stand) for query, stand in stands.items()},
    }


@app.command()
def back(
    generation: Generation = None,
    deployment: Annotated[
        list[str] | None,
        typer.Option(help="Of this pod's namespace: scale it to 0 before a savepoint is put back. May be repeated."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Prepare the return to the former image, by which this must be run, while the jobs are stopped.

    It goes on from its checkpoints. Only if it can't read them, the savepoint of `kappa upgrade begin` is put back.

    Example: kappa upgrade back
    """
    settings = _reached(load_settings(generation=generation))
    mark = marks.read(settings)
    with _without(deployment if mark.savepoint else None):
        line = way_back.back(mark, settings)
    _tell({"savepoint": mark.savepoint, "restored": line != way_back.GOES_ON, "why": line}, line, as_json)


def _without(deployments: list[str] | None) -> AbstractContextManager[None]:
    return Namespace.of_this_pod().without(deployments, STOP_SECONDS) if deployments else nullcontext()


def _tell(facts: dict[str, Any], line: str, as_json: bool) -> None:
    typer.echo(json.dumps(facts) if as_json else line)
