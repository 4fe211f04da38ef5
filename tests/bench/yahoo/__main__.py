"""`make bench-yahoo`: the Yahoo streaming benchmark, extended, on our runtime, Flink SQL and Kafka Streams, by turns.

Ad events in a Kafka topic are filtered to views, joined to their campaigns and counted by campaign and window of 10 s
of event time, exactly once, into a Kafka topic. What each engine writes is compared with what the generator knows: a
difference fails the benchmark.
"""

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from infra.errors import UserError
from tests.bench.yahoo.ads import STEPS_A_SECOND, TAIL_MS, WINDOW_MS, Ads
from tests.bench.yahoo.engines import BACKLOG, ENGINES, FLINK, STEADY, AdsLab, Programs, sent
from tests.bench.yahoo.trial import backlog, steady

BACKLOG_RATE = 10_000  # events a second of event time
FILL_SECONDS = 1_800.0
LEAD_MS = 2_000  # from a trial's start to its load's
TAIL_SECONDS = TAIL_MS // 1000
ALL = list(ENGINES)
LEAST_EVENTS = BACKLOG_RATE * 3 * WINDOW_MS // 1000  # so that some windows are complete
LEAST_SECONDS = 2 * WINDOW_MS // 1000  # so that a whole window is measured, wherever it begins

Facts = dict[str, Any]
app = typer.Typer(add_completion=False)
console = Console(stderr=True)


def _engine(name: str) -> str:
    if name not in ENGINES:
        raise typer.BadParameter(f"{name!r}: there are {', '.join(ENGINES)}")
    return name


@app.command()
def main(
    events: Annotated[int, typer.Option(min=LEAST_EVENTS, help="Of the backlog.")] = 4_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="How often each engine goes through the backlog.")] = 3,
    rate: Annotated[int, typer.Option(min=100, help="Events a second of the steady load.")] = 20_000,
    seconds: Annotated[int, typer.Option(min=LEAST_SECONDS, help="How long the steady load is measured.")] = 120,
    warm: Annotated[int, typer.Option(min=0, help="Seconds of the steady load before that.")] = 60,
    seed: Annotated[int, typer.Option(min=0, help="What the events follow from.")] = 1,
    engine: Annotated[
        list[str], typer.Option(parser=_engine, metavar="|".join(ENGINES), help="Which; may be repeated. [all]")
    ] = ALL,
    flink: Annotated[Path, typer.Option(help="A Python that has Flink.")] = Path(".venv-flink/bin/python"),
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/yahoo.json"),
) -> None:
    """Measure throughput, latency and queries of each engine, and compare what it counted with the truth.

    Exits with 1 if a count is wrong.

    Example: python -m tests.bench.yahoo --events 2000000 --rounds 1 --rate 10000 --seconds 60
    """
    if rate % STEPS_A_SECOND:
        raise typer.BadParameter(f"--rate {rate}: a multiple of {STEPS_A_SECOND} is needed")
    if FLINK in engine and not flink.is_file():
        raise typer.BadParameter(f"--flink {flink}: is not there; `make .venv-flink/.installed` makes it")
    options = {"events": events, "rounds": rounds, "rate": rate, "seconds": seconds, "warm": warm, "seed": seed}
    facts: Facts = {"shape": options, "backlog": {}, "steady": {}, "passed": False}
    with tempfile.TemporaryDirectory() as folder:
        try:
            programs = Programs.ready(Path(folder), flink)
        except UserError as error:
            raise typer.BadParameter(str(error)) from error
        span = events // BACKLOG_RATE
        facts["backlog"] = of_backlog(programs, engine, Ads(seed, _now_ms() - span * 1000, BACKLOG_RATE, span), rounds)
        _write(report, facts)
        for name in engine:
            facts["steady"][name] = under_load(programs, name, seed, rate, warm, seconds)
            _write(report, facts)
    facts["passed"] = is_right(facts)
    _write(report, facts)
    console.print(table(facts))
    raise typer.Exit(0 if facts["passed"] else 1)


def of_backlog(programs: Programs, engines: Sequence[str], ads: Ads, rounds: int) -> Facts:
    """The same backlog through each engine, round after round: the rounds, and their medians."""
    found: dict[str, list[Facts]] = {name: [] for name in engines}
    with tempfile.TemporaryDirectory() as folder, AdsLab(Path(folder), programs, BACKLOG).up() as lab:
        lab.create_topics()
        lab.fill_campaigns(ads)
        load, truth = lab.send(ads), ads.truth()
        console.print("backlog", sent(load, FILL_SECONDS))
        for number in range(rounds):
            lab.move_to(f"round{number}")
            for name in engines:
                found[name].append(backlog(lab, name, ads, truth))
                console.print(f"backlog, round {number}, {name}", found[name][-1])
    return {name: _medians(each) | {"rounds": each} for name, each in found.items()}


def under_load(programs: Programs, engine: str, seed: int, rate: int, warm: int, seconds: int) -> Facts:
    """A steady load through one engine, on a broker that has had no other."""
    with tempfile.TemporaryDirectory() as folder, AdsLab(Path(folder), programs, STEADY).up() as lab:
        lab.create_topics()
        lab.fill_campaigns(Ads(seed, 0, rate, 0))
        lab.start(engine)
        ads = Ads(seed, _now_ms() + LEAD_MS, rate, warm + seconds + TAIL_SECONDS)
        found = steady(lab, engine, ads, warm)
    console.print(f"steady, {engine}", found)
    return found


def _medians(rounds: Sequence[Facts]) -> Facts:
    numbers = (name for name, value in rounds[0].items() if isinstance(value, int | float))
    return {name: median(one[name] for one in rounds) for name in numbers}


def is_right(facts: Facts) -> bool:
    """Whether each engine has counted each window right, in each trial, and has answered nothing that can't be."""
    rounds = [one for found in facts["backlog"].values() for one in found["rounds"]]
    loads = list(facts["steady"].values())
    queries = [one["query"] for one in loads if one["query"]]
    is_counted = all(one["compared"]["passed"] for one in (*rounds, *loads))
    return is_counted and all(one["counts"] and not one["more_than_the_truth"] for one in queries)


def table(facts: Facts) -> Table:
    """A line an engine."""
    shown = Table("engine", "events/s", "CPU s a million", "broker's", "p50/p99/max", "query p50/p99", title="Yahoo")
    for name, found in facts["backlog"].items():
        late, query = facts["steady"][name]["latency"], facts["steady"][name]["query"] or {}
        cpu, broker = found["cpu_seconds_per_million"], found["broker_cpu_seconds_per_million"]
        lateness = "/".join(f"{late.get(f'{one}_s')}" for one in ("p50", "p99", "max"))
        asked = f"{query.get('p50_ms')}/{query.get('p99_ms')} ms" if query else "none"
        shown.add_row(name, f"{found['events_per_s']:,.0f}", f"{cpu:.1f}", f"{broker:.1f}", f"{lateness} s", asked)
    return shown


def _now_ms() -> int:
    return int(time.time()) * 1000


def _write(report: Path, facts: Facts) -> None:
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    app()
