"""`make bench-scaling`: what an event costs each stage as machines, partitions, cores and kinds of windows become more.

One thing is varied at a time. The load waits as a backlog, and each stage goes through it alone, as in `make bench`.
"""

import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from enum import StrEnum, auto
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import yaml
from rich.console import Console
from rich.table import Table

from infra.contract.topics import DEFAULT_MAP
from jobs.statistics.settings import DEFAULT_WINDOWS
from ops.simulator.encode import METRICS_TOPIC
from tests.bench.chain.trial import POINTS, Shape, alone, fill

STAGES = ("enrichment", "statistics")  # the detector's cost is of series: `make bench-detector`

app = typer.Typer(add_completion=False)
console = Console(stderr=True)


@dataclass(frozen=True)
class Case:
    """What is varied."""

    machines: int = 1_000
    partitions: int = 4
    cores: int = 2
    windows: int = 5  # so many of those in windows.yaml, the first ones


class Varied(StrEnum):
    """A field of Case."""

    MACHINES = auto()
    PARTITIONS = auto()
    CORES = auto()
    WINDOWS = auto()


VALUES = {
    Varied.MACHINES: (1_000, 10_000, 100_000),
    Varied.PARTITIONS: (1, 4, 16),
    Varied.CORES: (1, 2, 4),
    Varied.WINDOWS: (1, 2, 3, 5),
}
ALL = list(Varied)


def cases(varied: Iterable[Varied]) -> list[Case]:
    """Each once."""
    return list(dict.fromkeys(replace(Case(), **{name: value}) for name in varied for value in VALUES[name]))


@app.command()
def main(
    events: Annotated[int, typer.Option(help="Data points of a backlog.")] = 6_000_000,
    rate: Annotated[int, typer.Option(help="Data points a second: larger windows need a slow load.")] = 150_000,
    vary: Annotated[list[Varied], typer.Option(help="What is varied, one thing after the other.")] = ALL,
    memory: Annotated[str, typer.Option(help="KAPPA_DRIVER_MEMORY.")] = "2g",
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/scaling.json"),
) -> None:
    """Measure each case.

    A backlog spans events / rate seconds: for windows of five minutes, take a rate of 20000 or less.

    Example: python -m tests.bench.chain.scaling --vary machines --vary cores
    """
    report.parent.mkdir(exist_ok=True)
    settings = {"KAPPA_DRIVER_MEMORY": memory, "KAPPA_MAX_OFFSETS_PER_TRIGGER": "50000"}
    found: list[dict[str, Any]] = []
    for case in cases(vary):
        found.append(asdict(case) | {"stages": measure(case, settings, events, rate)})
        report.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))
        console.print(found[-1])
    console.print(table(found))


def measure(case: Case, settings: dict[str, str], events: int, rate: int) -> dict[str, dict[str, float]]:
    """Each stage alone through a backlog of such machines."""
    with tempfile.TemporaryDirectory() as folder:
        cores = {"KAPPA_SPARK_MASTER": f"local[{case.cores},4]", "KAPPA_SHUFFLE_PARTITIONS": str(case.cores)}
        files = {
            "KAPPA_TOPICS_FILE": str(with_partitions(Path(folder), case.partitions)),
            "KAPPA_STATISTICS_WINDOWS": str(with_windows(Path(folder), case.windows)),
        }
        shape = Shape(case.machines, 0, -(-events // rate), settings | cores | files).of_backlog()
        with shape.lab() as lab:
            waiting = fill(lab, shape, rate, METRICS_TOPIC)
            return {stage: alone(lab, stage, waiting) for stage in STAGES}


def with_partitions(folder: Path, partitions: int) -> Path:
    """The map of the chain, with so many partitions where a topic doesn't say how many."""
    declared = yaml.safe_load(DEFAULT_MAP.read_text())
    declared["defaults"]["partitions"] = partitions
    file = folder / "topics.yaml"
    file.write_text(yaml.safe_dump(declared))
    return file


def with_windows(folder: Path, count: int) -> Path:
    """The first windows of the default ones, of which the first is the pane of all."""
    declared = yaml.safe_load(DEFAULT_WINDOWS.read_text())
    declared["windows"] = declared["windows"][:count]
    file = folder / "windows.yaml"
    file.write_text(yaml.safe_dump(declared))
    return file


def table(found: list[dict[str, Any]]) -> Table:
    """A line a case."""
    shown = Table("machines", "series", "partitions", "cores", "windows", *(f"{stage}: µs CPU, MB" for stage in STAGES))
    for one in found:
        costs = (f"{cost['cpu_seconds_per_million']}, {cost['peak_megabytes']:,}" for cost in one["stages"].values())
        sizes = (f"{one['machines']:,}", f"{one['machines'] * POINTS:,}")
        shown.add_row(*sizes, *(str(one[name]) for name in ("partitions", "cores", "windows")), *costs)
    return shown


if __name__ == "__main__":
    app()
