"""`kappa replay`: starts, compares, promotes and drops generations of the chain."""

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from connectors.kafka.offsets import Log
from infra.contract.topics import LIVE, load_topics
from infra.errors import UserError
from jobs.runtime.session import session
from jobs.runtime.settings import Settings, load_settings, load_storage_settings
from jobs.table import JOBS
from ops.replay import diff as comparison
from ops.replay import platforms, promotion, run, views
from ops.replay.plan import SAVEPOINT, Request, parse_time, plan
from ops.replay.progress import Progress, Watched
from ops.replay.registry import Promotion, Registry, write
from ops.replay.restore import restore
from ops.savepoints import savepoints
from ops.units import seconds_of

app = typer.Typer(help="Replay the log through other code or settings, compare, promote.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 160)
errors = Console(stderr=True)
EXAMPLES = 5
REPLAYABLE = ", ".join(job.name for job in JOBS if job.is_replayable)
FOR_READERS = ", ".join(job.name for job in JOBS if job.is_for_readers)

Name = Annotated[str, typer.Argument(help="A generation.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Stay = Annotated[bool, typer.Option("--stay/--once", help="Follow the log until Ctrl-C, or end when caught up.")]


class Platform(StrEnum):
    """What runs the jobs of a generation."""

    processes = "processes"
    compose = "compose"
    kubernetes = "kubernetes"


class Source(StrEnum):
    """Where a replay reads the log."""

    kafka = "kafka"
    delta = "delta"


@app.command()
def start(
    *,
    name: Annotated[str, typer.Option("--as", help="The new generation's name, e.g. v2.")],
    job: Annotated[str, typer.Option(help=f"The first job to replay; those that follow it run too: {REPLAYABLE}.")],
    source: Annotated[
        Source, typer.Option(help="Where to read the log: Kafka, or the archive (delta) for what Kafka no longer has.")
    ] = Source.kafka,
    begin: Annotated[str, typer.Option("--from", help="A time, earliest, or savepoint:NAME.")] = "earliest",
    until: Annotated[str, typer.Option("--to", help="A time, latest, or follow.")] = "follow",
    changes: Annotated[list[str] | None, typer.Option("--set", help="job.setting=value; may be repeated.")] = None,
    where: Annotated[
        str | None, typer.Option(help="A condition on the records that are read, such as machine like 'vm-%'.")
    ] = None,
    max_rate: Annotated[int | None, typer.Option(min=1, help="Records a second to read at most.")] = None,
    base: Annotated[str | None, typer.Option(help="Whose topics to read. [the promoted generation]")] = None,
    on: Annotated[
        Platform | None, typer.Option(help="What runs its jobs. [what this command runs on]", case_sensitive=False)
    ] = None,
    image: Annotated[str | None, typer.Option(help="The image that it runs. [the live generation's]")] = None,
    ref: Annotated[
        str | None, typer.Option(help="Of processes: the git commit whose code it runs. [the present code]")
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(help=f"A job for readers to leave out: {FOR_READERS}. Quicker: to compare, not to promote."),
    ] = None,
    detach: Annotated[bool, typer.Option(help="Run in the background.")] = False,
    stay: Stay = True,
) -> None:
    """Start a job, and all that follow it, as a new generation beside the live one.

    As processes it runs here. For compose and Kubernetes it is planned, and what is to be applied there is printed.

    Example: kappa replay start --job detector --from 2026-03-01T06:00:00Z --set detector.alarms_per_day=20 --as v2
    """
    settings = load_storage_settings()
    platform = on.value if on else settings.platform
    platforms.check(platform, image, ref, detach)
    request = Request(
        name,
        job,
        begin,
        until,
        tuple(changes or ()),
        where,
        max_rate,
        base,
        source.value,
        platform,
        image,
        ref,
        tuple(without or ()),
    )
    registry = Registry.read(settings.kafka_bootstrap)
    _begin(request, registry, settings)
    if platform != "processes":
        _restore_if_planned(name, registry, settings)
        typer.echo(platforms.to_apply(registry.find(name), registry.generations.values(), settings))
        errors.print(f"{name} is planned; {platforms.HOW[platform]}, then: kappa replay watch {name}", soft_wrap=True)
    elif detach:
        errors.print(f"{name} runs in the background; its log: {run.detach(name, settings)}", soft_wrap=True)
    else:
        _run(name, settings, stay=stay)


def _begin(request: Request, registry: Registry, settings: Settings) -> None:
    """Plan the requested generation, from a savepoint if it names one, and create what it needs."""
    begin = request.begin
    saved = savepoints.find(begin.removeprefix(SAVEPOINT), settings) if begin.startswith(SAVEPOINT) else None
    if saved:
        request = replace(request, base=saved.generation)
    offsets = saved.offsets if saved else None
    planned = plan(request, settings, registry, Log(settings.kafka_bootstrap), offsets)
    if request.ref:
        run.checkout(request.ref, settings)
    run.begin(planned, saved, registry, settings)
    if saved and saved.job == "detector":
        errors.print(
            f"{request.name}: its incidents start from nothing: those that were open at the savepoint aren't in it"
        )


@app.command()
def resume(name: Name, stay: Stay = True) -> None:
    """Run the jobs of a generation again as processes: after a Ctrl-C, a crash, or on another machine.

    Example: kappa replay resume v2
    """
    settings = load_settings()
    platform = Registry.read(settings.kafka_bootstrap).find(name).platform
    if platform != "processes":
        raise UserError(
            f"generation={name}: {platform} runs its jobs; see how far they are by `kappa replay watch {name}`"
        )
    _run(name, settings, stay=stay)


@app.command()
def watch(
    name: Name,
    stay: Annotated[bool, typer.Option("--stay/--once", help="Until Ctrl-C, or until it has caught up.")] = False,
) -> None:
    """Show how far a generation is, whatever runs its jobs, until it has caught up, or with --stay until Ctrl-C.

    Example: kappa replay watch v2
    """
    settings = load_settings()
    watched = promotion.watch(name, Registry.read(settings.kafka_bootstrap), settings)
    with _stoppable() as stop, _bar(watched) as report:
        run.follow(watched, stop, report, stay=stay and watched.generation.follows)


def _run(name: str, settings: Settings, *, stay: bool) -> None:
    registry = Registry.read(settings.kafka_bootstrap)
    _restore_if_planned(name, registry, settings)
    watched = promotion.watch(name, registry, settings)
    with _stoppable() as stop, _bar(watched) as report:
        run.run(watched, stop, report, stay=stay and watched.generation.follows)


def _restore_if_planned(name: str, registry: Registry, settings: Settings) -> None:
    """Bring the archive back into topics, if the generation is to read it and that has not been done to its end."""
    if registry.find(name).state != "restoring":
        return
    with errors.status(f"{name}: bringing the archive back into topics"), session("kappa.replay", settings) as spark:
        registry.generations[name] = restore(registry.find(name), registry, settings, spark)
    write(settings.kafka_bootstrap, registry.generations[name])


@contextmanager
def _stoppable() -> Iterator[threading.Event]:
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    yield stop


@contextmanager
def _bar(watched: Watched) -> Iterator[run.Report]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}/{task.total:,.0f} records  {task.fields[rate]:,.0f}/s"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[reached]}  {task.fields[waiting]}"),
    )
    pace = run.Pace()
    with Bar(*columns, console=errors) as bar:
        total = sum(watched.generation.replay.backlog.values())
        task = bar.add_task(watched.generation.name, total=total, rate=0.0, reached="", waiting="starting")

        def report(progress: Progress, waiting: str | None) -> None:
            bar.update(
                task,
                completed=progress.done,
                total=progress.done + progress.left,
                rate=pace.rate(progress.done),
                reached=f"reached {_time(progress.reached_ms)}" if progress.reached_ms else "",
                waiting=f"waiting for {waiting}" if waiting else "caught up",
            )
            if not errors.is_terminal:
                errors.print(_line(watched, progress, waiting, pace), soft_wrap=True)

        yield report


def _line(watched: Watched, progress: Progress, waiting: str | None, pace: run.Pace) -> str:
    rate = pace.rate(progress.done)
    eta = f", {progress.left / rate:.0f} s left" if rate and progress.left else ""
    reached = f", event time {_time(progress.reached_ms)}" if progress.reached_ms else ""
    state = f"waiting for {waiting}" if waiting else "caught up"
    counts = f"{progress.done:,} of {progress.done + progress.left:,} records, {rate:,.0f}/s"
    return f"{watched.generation.name}: {counts}{eta}{reached}; {state}"


def _time(milli: int) -> str:
    return datetime.fromtimestamp(milli / 1000, UTC).isoformat(sep=" ", timespec="seconds")[:19]


@app.command("list")
def list_generations(as_json: Json = False) -> None:
    """List the generations: what each runs, and which one readers see.

    Example: kappa replay list
    """
    registry = Registry.read(load_settings().kafka_bootstrap)
    rows = [_row(name, registry) for name in registry.names]
    _show(rows, as_json)


def _row(name: str, registry: Registry) -> dict[str, Any]:
    found = registry.find(name)
    return {
        "generation": name,
        "readers": {name: "see it", registry.promotion.previous: "saw it before"}.get(name, "")
        if name in (registry.promotion.generation, registry.promotion.previous)
        else "",
        "base": found.base,
        "jobs": ", ".join(found.jobs),
        "from": found.begin,
        "to": found.until,
        "on": found.platform,
        "image": found.image or "",
        "settings": ", ".join(f"{key}={value}" for key, value in found.settings.items()),
        "where": found.replay.where or "",
        "state": found.state,
    }


@app.command()
def status(name: Name, as_json: Json = False) -> None:
    """Show the progress of a generation: the backlog of each of its jobs.

    Example: kappa replay status v2
    """
    settings = load_settings()
    registry = Registry.read(settings.kafka_bootstrap)
    watched = promotion.watch(name, registry, settings)
    progress = watched.progress()
    first = next(iter(watched.groups()))
    rows: list[dict[str, Any]] = [{"job": first, "behind": progress.left}]
    rows += [{"job": group, "behind": behind} for group, behind in progress.behind.items()]
    if as_json:
        facts = {
            "generation": name,
            "state": watched.generation.state,
            "promoted": registry.promotion.generation,
            "done": progress.done,
            "reached_ms": progress.reached_ms,
            "behind": {row["job"]: row["behind"] for row in rows},
            "pid": run.running(watched.settings),
        }
        console.print_json(json.dumps(facts))
        return
    _show(rows, as_json)
    pid = run.running(watched.settings)
    reached = f"event time {_time(progress.reached_ms)}, " if progress.reached_ms else ""
    console.print(f"{name}: {reached}{_runs(watched, pid)}")


def _runs(watched: Watched, pid: int | None) -> str:
    if watched.generation.platform != "processes":
        return f"run by {watched.generation.platform}"
    return f"run by process {pid} here" if pid else "not run from this machine"


@app.command()
def diff(
    first: Annotated[str, typer.Argument(help="A generation.")],
    second: Annotated[str, typer.Argument(help="Another one.")],
    until: Annotated[str | None, typer.Option(help="A time. [what both have reached]")] = None,
    examples: Annotated[int, typer.Option(help="How many differences to show.")] = EXAMPLES,
    as_json: Json = False,
) -> None:
    """Compare two generations record by record. Exits with 1 if they differ.

    Example: kappa replay diff live v2
    """
    settings = load_settings()
    registry = Registry.read(settings.kafka_bootstrap)
    found, end = _compared(first, second, registry, settings, parse_time(until) if until else None)
    if as_json:
        _print_diff(found)
    else:
        _show_diff(found, first, second, examples, end)
    raise typer.Exit(not found.is_empty)


def _compared(
    first: str, second: str, registry: Registry, settings: Settings, until_ms: int | None = None
) -> tuple[comparison.Diff, int]:
    """The differences of two generations up to a time, by default what both have reached; gives that too."""
    declared = load_topics(settings.topics_file)
    both = [promotion.watch(name, registry, settings) for name in (first, second)]
    jobs = {*both[0].generation.jobs} & {*both[1].generation.jobs}
    topics = comparison.differing_topics(registry.topics(first, declared), registry.topics(second, declared), jobs)
    since = max(watched.generation.begin_ms or 0 for watched in both)
    end = min(watched.reached() for watched in both) if until_ms is None else until_ms
    return comparison.diff(topics, comparison.reader(settings.kafka_bootstrap), since, end), end


def _print_diff(found: comparison.Diff) -> None:
    facts = {
        "compared": found.compared,
        "summary": [
            {"topic": topic, "kind": kind, "machine": machine, "verdict": verdict, "records": count}
            for (topic, kind, machine, verdict), count in sorted(found.summary().items())
        ],
        "differences": [one.as_dict() for one in found.differences],
    }
    typer.echo(json.dumps(facts, indent=2))


def _show_diff(found: comparison.Diff, first: str, second: str, examples: int, until_ms: int) -> None:
    console.print(f"until {_time(until_ms)}")
    for topic, (one, other) in found.compared.items():
        console.print(f"{topic}: {one:,} {'' if topic == 'events' else 'records '}in {first}, {other:,} in {second}")
    if found.is_empty:
        console.print("no difference")
        return
    table = Table("topic", "difference", "machine", "verdict", "records", box=None, header_style="bold")
    for (topic, kind, machine, verdict), count in sorted(found.summary().items()):
        table.add_row(topic, kind, machine, verdict, str(count))
    console.print(table)
    for difference in found.differences[:examples]:
        known = difference.one or difference.other or {}
        detail = ", ".join(difference.fields) or known.get("text", known.get("id"))
        console.print(f"{difference.topic} {difference.kind}: {known.get('machine')} {detail}", markup=False)


@app.command()
def promote(
    name: Name,
    force: Annotated[bool, typer.Option(help="Even if it has not caught up, or ends before the log does.")] = False,
    tolerance: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Only if at most this share of each topic's records differs; else exit 1."),
    ] = None,
    # The archive has a batch a minute, and may have just begun one.
    deadline: Annotated[str, typer.Option(help="How long it may take to catch up, e.g. 2h.")] = "5m",
) -> None:
    """Switch readers to a generation: Elasticsearch's aliases and the pointer to the Delta tables.

    With --tolerance it is compared with what readers see now, and one that differs too much is left for a person.

    Example: kappa replay promote v2 --tolerance 0.01 --deadline 2h
    """
    patience = seconds_of(deadline, "--deadline")
    settings = load_storage_settings()
    registry = Registry.read(settings.kafka_bootstrap)
    promotion.check_readable(registry.find(name))
    if not force:
        promotion.check_caught_up(promotion.watch(name, registry, settings), patience)
    if tolerance is not None and name != registry.promotion.generation:
        _check_difference(name, tolerance, registry, settings)
    _promote(name, registry, settings)


def _check_difference(name: str, tolerance: float, registry: Registry, settings: Settings) -> None:
    """End with 1, and one line that says why, if a generation differs too much from what readers see."""
    now = registry.promotion.generation
    if reason := promotion.too_different(_compared(now, name, registry, settings)[0], tolerance):
        typer.echo(f"{name} is not promoted: {reason}; kappa replay diff {now} {name} shows what differs")
        raise typer.Exit(1)


@app.command()
def rollback() -> None:
    """Switch readers back to the generation that was promoted before.

    Example: kappa replay rollback
    """
    settings = load_storage_settings()
    registry = Registry.read(settings.kafka_bootstrap)
    _promote(registry.promotion.previous or LIVE, registry, settings)


def _promote(name: str, registry: Registry, settings: Settings) -> None:
    registry.find(name)
    with session("kappa.replay", settings) as spark:
        found: Promotion = promotion.promote(name, registry, settings, spark)
    errors.print(f"readers see {found.generation}; before, they saw {found.previous or LIVE}")


@app.command()
def drop(name: Name) -> None:
    """Delete a generation: topics, indices, tables, checkpoints; but not the promoted one.

    Example: kappa replay drop v1
    """
    settings = load_storage_settings()
    registry = Registry.read(settings.kafka_bootstrap)
    registry.find(name)
    promotion.check_droppable(name, registry, settings)
    promotion.drop(name, registry, settings)
    errors.print(f"{name} is dropped")


@app.command("views")
def show_views(as_json: Json = False) -> None:
    """Show what readers see: the indices of each Elasticsearch alias, and the path of each table.

    Example: kappa replay views
    """
    settings = load_settings()
    registry = Registry.read(settings.kafka_bootstrap)
    found = views.aliases(promotion.elasticsearch(settings), load_topics(settings.topics_file))
    rows = [{"view": alias, "leads to": ", ".join(indices)} for alias, indices in found.items()]
    tables = views.locations(registry.promotion.generation, registry, settings)
    _show([*rows, *({"view": f"table {key}", "leads to": path} for key, _, path in tables)], as_json)


def _show(rows: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        console.print_json(json.dumps(rows))
        return
    columns = [column for column in rows[0] if any(row[column] != "" for row in rows)]
    table = Table(*columns, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(str(row[column]) for column in columns))
    console.print(table)
