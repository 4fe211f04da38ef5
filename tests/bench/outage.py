"""`make bench-outage`: how soon the chain is current again after an outage in which the load went on.

Real broker and Elasticsearch, all jobs and the load as processes, the shipped defaults. All jobs are killed at once,
and started again after the outage.
"""

import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console

from tests.bench.chain.indexed import INDEXER, IndexedLab
from tests.bench.chain.lab import STAGES, Lab
from tests.bench.chain.trial import LOOK_SECONDS
from tests.waiting import until

JOBS = (*STAGES, INDEXER)
STEADY_SECONDS = 10.0  # in which nobody may be behind: what one job has just written is the next one's lag
ALIKE = 1.2  # lag is a sawtooth, and was looked at now and then

app = typer.Typer(add_completion=False)
console = Console(stderr=True)


@app.command()
def main(
    rate: Annotated[int, typer.Option(help="Events a second, in scrapes, during the outage too.")] = 50_000,
    machines: Annotated[int, typer.Option(help="Machines, of some 31 series each.")] = 1_000,
    warm: Annotated[int, typer.Option(help="Seconds before the lags of normal times are taken.")] = 180,
    normal: Annotated[int, typer.Option(help="Seconds in which these are taken; the archive works each minute.")] = 130,
    outage: Annotated[int, typer.Option(help="Seconds without jobs.")] = 600,
    patience: Annotated[int, typer.Option(help="Seconds in which the chain must be current again.")] = 900,
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/outage.json"),
) -> None:
    """Measure how long each job, and the whole chain, needs until its lag is what it was before the outage.

    The time is from the start of the jobs' processes, and that of a JVM is in it. The report is `passed` if all were
    current before `--patience` ended; it says for each job since when it was.

    Example: python -m tests.bench.outage --rate 20000 --outage 60
    """
    report.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, IndexedLab(Path(folder), {}).up() as lab:
        for name in STAGES:
            lab.start(name)
        lab.spawn(INDEXER)
        load = lab.load(rate, warm + normal + outage + patience, machines, singles=False)
        try:
            time.sleep(warm)
            usual = largest_lags(lab, normal)
            lab.stop()
            time.sleep(outage)
            waiting = lags(lab)
            found = recovery(lab, usual, patience)
        finally:
            load.kill()
            load.wait()
    passed = len(found) == len(JOBS)
    after = max(found.values()) if passed else None
    facts = {"passed": passed, "rate": rate, "outage_s": outage, "current_after_s": after, "jobs_after_s": found}
    facts |= {"usual_lag": usual, "waiting": waiting}
    report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    console.print(facts)


def lags(lab: Lab) -> dict[str, int]:
    """Records that each job hasn't read yet."""
    return {name: lab.position(name)[1] for name in JOBS}


def largest_lags(lab: Lab, seconds: int) -> dict[str, int]:
    """The largest lag of each job in that time."""
    largest, deadline = lags(lab), time.monotonic() + seconds
    while time.monotonic() < deadline:
        time.sleep(LOOK_SECONDS)
        largest = {name: max(lag, largest[name]) for name, lag in lags(lab).items()}
    lab.check()
    return largest


def recovery(lab: Lab, usual: Mapping[str, int], patience: int) -> dict[str, float]:
    """Start all jobs; gives the seconds until each had no larger lag than usual and stayed so, for those that had.

    A job is as far as the one before it lets it be: the chain is current when the last of them is.
    """
    began = time.monotonic()
    since: dict[str, float] = {}

    def is_current() -> bool:
        lab.check()
        now = round(time.monotonic() - began, 1)
        for name, lag in lags(lab).items():
            if lag > ALIKE * usual[name]:
                since.pop(name, None)
            else:
                since.setdefault(name, now)
        return len(since) == len(usual) and now - max(since.values()) >= STEADY_SECONDS

    for name in JOBS:
        lab.spawn(name)
    with suppress(TimeoutError):
        until(is_current, patience, "the chain stays behind", pause=LOOK_SECONDS)
    return since


if __name__ == "__main__":
    app()
