"""`kappa autoscale`: what the running jobs need."""

import time
from collections.abc import Sequence
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from infra.contract.topics import load_topics
from jobs.runtime.settings import load_settings
from ops.capacity.advice import Advice, Room, Target, advise, cores_of
from ops.capacity.observe import observe, running
from ops.job_addresses import JobAddresses, MetricsUrl

app = typer.Typer()
console = Console(width=120)
errors = Console(stderr=True)


@app.command()
def autoscale(
    *,
    seconds: Annotated[int, typer.Option(min=10, help="How long the jobs are watched.")] = 120,
    busy: Annotated[float, typer.Option(min=0.1, max=1, help="Of the cores' time, at most.")] = 0.6,
    catch_up: Annotated[float, typer.Option(min=1, help="Seconds within which a lag is to be gone.")] = 600,
    cores: Annotated[
        int | None, typer.Option(min=1, help="Of each application. [those of KAPPA_SPARK_MASTER=local[N]]")
    ] = None,
    metrics_url: MetricsUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Watch the running Spark jobs, and say how many cores and partitions each needs. Nothing is changed.

    Cores are KAPPA_SPARK_MASTER's, or the chart's spark.executors, and need a restart. No more of them work than there
    are KAPPA_SHUFFLE_PARTITIONS. Those, and partitions of topics that are sharded by machine, are fixed for the life of
    a generation.

    Example: kappa autoscale --seconds 300
    """
    settings, topics = load_settings(), load_topics()
    addresses = JobAddresses(settings, metrics_url)
    jobs = running(settings, topics, addresses)
    have = cores or cores_of(settings.spark_master)
    began, before = time.monotonic(), observe(jobs, addresses)
    for _ in track(range(seconds), "watching", console=errors, transient=True):
        time.sleep(1)
    after, passed = observe(jobs, addresses), time.monotonic() - began
    found = [
        advise(name, (before[name], after[name]), passed, Room(have, one.partitions), Target(busy, catch_up))
        for name, one in jobs.items()
    ]
    if as_json:
        typer.echo(orjson.dumps([one.as_dict() for one in found], option=orjson.OPT_INDENT_2).decode())
        return
    _show(found)


def _show(found: Sequence[Advice]) -> None:
    table = Table("job", "busy", "rows/s", "lag", "a second", "cores", "partitions", "advice", box=None)
    for one in found:
        figures = (f"{one.busy:.0%}", f"{one.rows_per_second:,.0f}", f"{one.lag:,.0f}", f"{one.lag_per_second:+,.0f}")
        table.add_row(one.job, *figures, str(one.cores), str(one.partitions), one.says)
    console.print(table)
