"""`make bench-cluster`: what Spark's own cluster manager costs beside `local[2]`, and what a second executor gives.

One backlog of scrapes, which each stage reads alone, as in `make bench`: in the driver's own threads, with one executor
of one core on another process than the driver's, and with two. All as generations of the same topics, in one run.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from ops.simulator.encode import METRICS_TOPIC
from tests.bench.chain.trial import Shape, alone, fill
from tests.chaos.standalone import WORKERS, Standalone

LOCAL = "local[2]"
EXECUTORS = {"one": 1, "two": WORKERS}  # by the name of the generation
STAGES = ("enrichment", "statistics")  # which have most of the chain's work
# Of an executor; none comes or goes while it is measured, and no task is done twice.
CONF = {
    "spark.executor.memory": "1500m",
    "spark.dynamicAllocation.enabled": "false",
    "spark.speculation": "false",
}

console = Console(stderr=True)


def main(
    events: Annotated[int, typer.Option(help="Data points of the backlog.")] = 9_000_000,
    rate: Annotated[int, typer.Option(help="Data points a second, as they are sent.")] = 150_000,
    machines: Annotated[int, typer.Option(help="Machines, of some 31 series each.")] = 1_000,
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/bench-cluster.json"),
) -> None:
    """Measure each stage in each way.

    Example: python -m tests.bench.cluster --events 3000000
    """
    settings = {"KAPPA_DRIVER_MEMORY": "2g", "KAPPA_SPARK_MASTER": "local[2,4]", "KAPPA_SHUFFLE_PARTITIONS": "2"}
    shape = Shape(machines, 0, -(-events // rate), settings).of_backlog()
    with shape.lab() as lab, _standalone() as cluster:
        waiting = fill(lab, shape, rate, METRICS_TOPIC)
        found = {LOCAL: {stage: alone(lab, stage, waiting) for stage in STAGES}}
        console.print(LOCAL, found[LOCAL])
        workers = [one.running.pid for one in cluster.workers if one.running]
        for name, executors in EXECUTORS.items():
            lab.move_to(name)
            for job in lab.jobs.values():
                job.extra |= _spread(cluster, executors)
            found[name] = {stage: alone(lab, stage, waiting, workers) for stage in STAGES}
            console.print(f"executors: {name}", found[name])
    facts = {"events": waiting, "ways": found, **ratios(found)}
    report.parent.mkdir(exist_ok=True)
    report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    console.print(_table(found), {name: facts[name] for name in ("cost_ratio", "speed_ratio", "second_executor")})


@contextmanager
def _standalone() -> Iterator[Standalone]:
    with tempfile.TemporaryDirectory() as folder:
        cluster = Standalone(Path(folder) / "cluster")
        try:
            cluster.up()
            yield cluster
        finally:
            cluster.down()


def _spread(cluster: Standalone, executors: int) -> dict[str, str]:
    """The variables by which a job has so many executors of one core."""
    conf = cluster.conf | CONF | {"spark.cores.max": str(executors)}
    return cluster.environment | {"KAPPA_SPARK_CONF": orjson.dumps(conf).decode()}


def ratios(found: Mapping[str, Mapping[str, Mapping[str, float]]]) -> dict[str, dict[str, float]]:
    """By stage: CPU an event and speed with two executors, by those of `local[2]`; speed of two by that of one."""

    def ratio(figure: str, one: str, other: str) -> dict[str, float]:
        return {stage: round(found[one][stage][figure] / found[other][stage][figure], 2) for stage in STAGES}

    return {
        "cost_ratio": ratio("cpu_seconds_per_million", "two", LOCAL),
        "speed_ratio": ratio("events_per_s", "two", LOCAL),
        "second_executor": ratio("events_per_s", "two", "one"),
    }


def _table(found: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> Table:
    shown = Table("way", *(f"{stage}: events/s, µs CPU, MB" for stage in STAGES))
    for way, stages in found.items():
        figures = (
            f"{one['events_per_s']:,}, {one['cpu_seconds_per_million']}, {one['peak_megabytes']:,}"
            for one in stages.values()
        )
        shown.add_row(way, *figures)
    return shown


if __name__ == "__main__":
    typer.run(main)
