"""`kappa capacity`: what a fleet needs."""

from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from infra.contract.topics import load_topics
from ops.capacity.costs import DEFAULT, read_costs
from ops.capacity.plan import Load, Plan, plan
from ops.units import size

app = typer.Typer()
console = Console(width=120)


@app.command()
def capacity(
    *,
    events_per_second: Annotated[float, typer.Option(min=1, help="Data points and log lines.")],
    machines: Annotated[int, typer.Option(min=1, help="Physical and virtual ones.")],
    scrape: Annotated[float, typer.Option(min=0.1, help="Seconds between two points of a series.")] = 10,
    busy: Annotated[float, typer.Option(min=0.1, max=1, help="Of the cores' time, at most.")] = 0.6,
    replication: Annotated[int, typer.Option(min=1, help="Kafka's copies.")] = 3,
    retention_days: Annotated[float, typer.Option(min=0.01, help="For which Kafka keeps records.")] = 7,
    archive_days: Annotated[float, typer.Option(min=0.01, help="For which the Delta tables keep them.")] = 90,
    costs: Annotated[
        Path | None, typer.Option(help="What was measured on your machines. [ops/capacity/costs.yaml]")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a fleet needs: cores, memory, partitions, disks, and what breaks first.

    Computed from what was measured on two cores, and tried in a simulation of Spark's scheduler; nothing above 200,000
    events a second was run. The indexer's and the notifier's cores, and Elasticsearch's, were not measured.

    Example: kappa capacity --events-per-second 1000000 --machines 320000 --scrape 10
    """
    load = Load(events_per_second, machines, scrape, busy, replication, retention_days, archive_days)
    found = plan(load, read_costs(costs or DEFAULT), load_topics())
    if as_json:
        typer.echo(orjson.dumps(found.as_dict(), option=orjson.OPT_INDENT_2).decode())
        return
    _show(found)


def _show(found: Plan) -> None:
    load = found.load
    console.print(
        f"{load.events_per_second:,.0f} events/s of {load.machines:,} machines: {load.series:,} series, "
        f"{load.points_a_scrape:,.0f} points a scrape, {load.updates_per_second:,.0f} windows of a series a second\n"
    )
    jobs = Table("job", "µs an event", "cores", "executors of a core", "memory of state", "a batch takes", box=None)
    for one in found.jobs:
        took = one.simulated.batch_seconds
        jobs.add_row(
            one.job,
            f"{one.cpu_us_an_event:.1f}",
            f"{one.cores:.1f}",
            str(one.executors),
            size(one.memory_bytes) if one.memory_bytes else "",
            "without end" if took is None else f"{took:.1f} s",
        )
    console.print(jobs)
    servers = Table("server", "needs", box=None)
    servers.add_row(
        "Kafka",
        f"{found.broker_cores:.1f} cores, {size(found.kafka_bytes_per_second)}/s, {size(found.kafka_bytes)} in "
        f"{load.retention_days:g} days, {load.replication} copies; {found.partitions} partitions by machine",
    )
    servers.add_row(
        "Delta tables",
        f"{size(found.delta_bytes_per_day)} a day, {size(found.delta_bytes)} in {load.archive_days:g} days",
    )
    servers.add_row("Elasticsearch", f"{found.documents_per_second:,} documents of statistics a second")
    console.print("", servers, "", sep="\n")
    limits = Table("what breaks first", "needed", "is", "then", box=None)
    for limit in found.limits:
        limits.add_row(
            limit.what, f"{limit.needed:,.0f}", f"{limit.limit:,.0f}", limit.advice if limit.ratio > 1 else ""
        )
    console.print(limits)
