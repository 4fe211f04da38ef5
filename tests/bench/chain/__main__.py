"""`make bench`: how many events a second the chain sustains, what each stage costs, and how far that is from the limit.

Real broker, the jobs and the load as processes of their own, exactly-once, the archive on. One rate after the other
is tried, until a stage falls behind.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from ops.simulator.encode import LINES_TOPIC, METRICS_TOPIC
from tests.bench.chain.trial import POINTS, Shape, apart, climb
from tests.bench.peers.engines import Flink
from tests.bench.peers.trial import beside, versus

# Events a second, for scrapes and for single events.
RATES = [10_000, 25_000, 50_000, 100_000, 115_000, 130_000, 150_000, 200_000, 250_000]
SINGLE_RATES = [10_000, 25_000, 50_000, 60_000, 75_000, 100_000]

LATENCY_RATE = 10_000  # of our enrichment and statistics, then of Flink's

Trial = dict[str, Any]
app = typer.Typer(add_completion=False)
console = Console(stderr=True)


@app.command()
def main(
    rate: Annotated[list[int], typer.Option(help="Events a second, one after the other; 0: none.")] = RATES,
    single_rate: Annotated[list[int], typer.Option(help="The same with one event a record.")] = SINGLE_RATES,
    machines: Annotated[int, typer.Option(help="Machines, of some 31 series each.")] = 1_000,
    warm: Annotated[int, typer.Option(help="Seconds at the rates' median before the first is measured.")] = 300,
    seconds: Annotated[int, typer.Option(help="Seconds of a measurement.")] = 180,
    max_offsets: Annotated[
        int, typer.Option(help="KAPPA_MAX_OFFSETS_PER_TRIGGER; of single events 31 times as many.")
    ] = 100_000,
    trigger: Annotated[float, typer.Option(help="KAPPA_TRIGGER_SECONDS.")] = 10,
    memory: Annotated[str, typer.Option(help="KAPPA_DRIVER_MEMORY.")] = "2g",
    flink: Annotated[Path, typer.Option(help="A Python that has Flink.")] = Path(".venv-flink/bin/python"),
    peer_rate: Annotated[int, typer.Option(help="Events a second for Flink and us; 0: leave it out.")] = 40_000,
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/bench.json"),
) -> None:
    """Find the rates that the chain sustains.

    Example: python -m tests.bench.chain --rate 20000 --rate 40000 --single-rate 0
    """
    facts: dict[str, dict[str, Any]] = {part: {} for part in ("chain", "limit", "stages", "shape", "trials", "flink")}
    report.parent.mkdir(exist_ok=True)

    def shape_of(most_offsets: int) -> Shape:
        batch = {"KAPPA_TRIGGER_SECONDS": str(trigger), "KAPPA_MAX_OFFSETS_PER_TRIGGER": str(most_offsets)}
        return Shape(machines, warm, seconds, batch | {"KAPPA_DRIVER_MEMORY": memory})

    # A batch of single events is as large as one of scrapes.
    batched, singles = (rate, METRICS_TOPIC, max_offsets), (single_rate, LINES_TOPIC, max_offsets * POINTS)
    for name, (rates, topic, most_offsets) in {"events_per_s": batched, "single_events_per_s": singles}.items():
        if not any(rates):
            continue
        shape = shape_of(most_offsets)
        facts["shape"][name] = asdict(shape)
        trials: list[Trial] = []
        facts["trials"][name] = trials
        for one in climb(shape, rates, topic):
            trials.append(one)
            console.print(one)
            facts["chain"][name] = sustained(trials)
            report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
        found = facts["chain"][name]
        console.print(f"{name}: {found:,}; now each stage alone, and the limit")
        parts = apart(shape, found or trials[-1]["rate"], topic)
        facts["limit"][name], facts["stages"][name] = parts["limit"], parts["stages"]
        report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
        console.print(table(name, trials), parts)
    if peer_rate:
        shape = shape_of(max_offsets)
        facts["flink"] = versus(shape, peer_rate, [Flink(flink)])
        report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
        facts["flink"]["latency"] = beside(shape, LATENCY_RATE, [Flink(flink)])
        report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
        console.print(facts["flink"])


def sustained(trials: list[Trial]) -> int:
    """The highest rate at which every lag was flat; 0 if there was none."""
    return max((one["events_per_s"] for one in trials if one["sustained"]), default=0)


def table(title: str, trials: list[Trial]) -> Table:
    """A line a trial."""
    shown = Table("events/s", "sustained", "CPU s a million events", "peak MB", "p50/p99 of events", title=title)
    for one in sorted(trials, key=lambda one: int(one["rate"])):
        cpu, peak, late = one["cpu_seconds_per_million"], one["peak_megabytes"], one["latency"].get("events", {})
        cells = (f"{sum(cpu.values()):.1f}", f"{sum(peak.values()):,}", f"{late.get('p50_s')}/{late.get('p99_s')} s")
        shown.add_row(f"{one['events_per_s']:,}", "yes" if one["sustained"] else "no", *cells)
    return shown


if __name__ == "__main__":
    app()
