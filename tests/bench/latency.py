"""`make bench-latency`: how late results are with the shipped defaults, and what an event costs, at several rates.

Real broker and Elasticsearch, all jobs and the load as processes, exactly-once, archive and indexer on; no setting is
changed. And what a batch of each stage costs that has hardly any records.
"""

import tempfile
from functools import partial
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from jobs.runtime.lateness import LatenessFollower
from ops.simulator.encode import LINES_TOPIC, METRICS_TOPIC
from tests.bench.chain.fixed_cost import fixed_cost
from tests.bench.chain.indexed import INDEXER, Indexed, IndexedLab
from tests.bench.chain.lab import STAGES
from tests.bench.chain.trial import TOLD, Shape, trial

TOPICS = {"scrapes": METRICS_TOPIC, "single": LINES_TOPIC}
CASES = ["10000:scrapes", "50000:scrapes", "10000:single"]
DOCUMENTS = "elasticsearch"
OTHERS = ("realtime", "peers", "yahoo", "outage")  # benchmarks that measure time, too, and the names of their reports
app = typer.Typer(add_completion=False)
console = Console(stderr=True)


@app.command()
def main(
    case: Annotated[list[str], typer.Option(help="RATE:FORM, events a second as `scrapes` or `single` ones.")] = CASES,
    machines: Annotated[int, typer.Option(help="Machines, of some 31 series each.")] = 1_000,
    warm: Annotated[int, typer.Option(help="Seconds at the first rate before anything is measured.")] = 300,
    seconds: Annotated[int, typer.Option(help="Seconds of a measurement.")] = 600,
    quiet: Annotated[int, typer.Option(help="Seconds in which the batches' fixed cost is measured.")] = 120,
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/latency.json"),
) -> None:
    """Measure from the broker's time of a raw record to `events`, and from a window's end to what is said of it.

    `elasticsearch` is from a window's end until the indexer has committed its statistics: their documents are written.
    By default these are windows of a minute, all machines' at once.
    The report is `passed` if every job kept up with every rate. What the other benchmarks of time, and `kappa demo
    --json`, have left in the report's folder is put into it, as it is.

    KAPPA_PROFILE=small before it has all jobs in one process. No other setting is changed by the benchmark.

    Example: python -m tests.bench.latency --case 10000:scrapes --warm 60 --seconds 120
    """
    shape = Shape(machines, warm, seconds, {})
    rates = [_parsed(one) for one in case]
    facts: dict[str, Any] = {"passed": False, "rates": [], "fixed_cost_ms": {}}
    report.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, IndexedLab(Path(folder), {}).up() as lab:
        for name in STAGES:
            lab.start(name)
        lab.spawn(INDEXER)
        lab.load(rates[0][0], warm, machines, singles=rates[0][1] == "single").communicate(timeout=warm + 120)
        facts["fixed_cost_ms"] = fixed_cost(lab, machines, quiet)
        console.print(facts["fixed_cost_ms"])
        statistics = lab.topics["statistics"]
        for rate, form in rates:
            measured = trial(lab, shape, rate, TOPICS[form], {DOCUMENTS: partial(Indexed, lab, statistics)})
            cpu = sum(measured["cpu_seconds_per_million"].values())
            latency = {name: measured["latency"].get(name) for name in (*TOLD, DOCUMENTS)}
            allowed = LatenessFollower(lab.broker.address, lab.topics).catch_up()
            figures = {"lateness_s": allowed.latest_ms / 1000, "cpu_us_per_event": round(cpu, 2), "measured": measured}
            facts["rates"].append({"rate": rate, "form": form, **latency, **figures})
            facts["passed"] = all(one["measured"]["sustained"] for one in facts["rates"])
            report.write_bytes(orjson.dumps(facts | beside(report.parent), option=orjson.OPT_INDENT_2))
            console.print({name: value for name, value in facts["rates"][-1].items() if name != "measured"})


def beside(folder: Path) -> dict[str, Any]:
    """The reports of the other benchmarks in a folder, and how long the demo's faults took to Elasticsearch."""
    found = {name: orjson.loads((folder / f"{name}.json").read_bytes()) for name in OTHERS if _is_there(folder, name)}
    if not _is_there(folder, "demo"):
        return found
    faults = orjson.loads((folder / "demo.json").read_bytes())["faults"]
    seen = [fault["seen_s"] for fault in faults if fault["seen_s"] is not None]
    return found | {"fault_to_elasticsearch_p50_s": median(seen) if seen else None}


def _is_there(folder: Path, name: str) -> bool:
    return (folder / f"{name}.json").exists()


def _parsed(case: str) -> tuple[int, str]:
    rate, _, form = case.partition(":")
    if not rate.isdigit() or form not in TOPICS:
        raise typer.BadParameter(f"{case!r}: RATE:FORM is wanted, with FORM one of {', '.join(TOPICS)}")
    return int(rate), form


if __name__ == "__main__":
    app()
