"""`make bench-secured`: what TLS, passwords and rights take from the chain's throughput.

Two brokers, one of them secured, hold the same backlog of scrapes; each stage reads first the one, then the other,
alone on the machine. The chain's throughput is that of its stages one after the other.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from infra.local.identities import Identities
from ops.simulator.encode import METRICS_TOPIC
from tests.bench.chain.lab import PORT, STAGES, Lab, administering
from tests.bench.chain.trial import Shape, alone, fill

WAYS = ("plaintext", "secured")
LEAST = 0.8  # of the plaintext's throughput

console = Console(stderr=True)


def main(
    rate: Annotated[int, typer.Option(help="Events a second of the load that makes the backlog.")] = 100_000,
    seconds: Annotated[int, typer.Option(help="How long it lasts.")] = 150,
    machines: Annotated[int, typer.Option(help="Machines, of some 31 series each.")] = 1_000,
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/bench-secured.json"),
) -> None:
    """Measure each stage on both brokers. Exits with 1 if the secured chain reaches less than 0.8 of the other.

    Example: python -m tests.bench.secured --rate 50000 --seconds 60
    """
    shape = Shape(machines, 0, seconds, {"KAPPA_DRIVER_MEMORY": "2g"}).of_backlog()
    with ExitStack() as stack:
        labs = {way: stack.enter_context(_lab(shape, number)) for number, way in enumerate(WAYS)}
        events = {}
        for way, lab in labs.items():
            with administering(lab.identities):
                events[way] = fill(lab, shape, rate, METRICS_TOPIC)
        stages: dict[str, dict[str, Any]] = {way: {} for way in WAYS}
        for stage in STAGES:
            for way, lab in labs.items():
                with administering(lab.identities):
                    stages[way][stage] = alone(lab, stage, events[way])
                console.print(way, stage, stages[way][stage])
    chain = {way: round(_together(found)) for way, found in stages.items()}
    ratio = round(chain["secured"] / chain["plaintext"], 3)
    facts = {"passed": ratio >= LEAST, "ratio": ratio, "chain_events_per_s": chain, "stages": stages, "events": events}
    report.parent.mkdir(exist_ok=True)
    report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    console.print(_table(stages, chain), f"secured / plaintext: {ratio}")
    raise typer.Exit(not facts["passed"])


@contextmanager
def _lab(shape: Shape, number: int) -> Iterator[Lab]:
    """A broker in a folder of its own, which is deleted; the second one is secured."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        identities = Identities(home / "security") if number else None
        if identities:
            identities.create()
        with (
            administering(identities),
            Lab(home, shape.settings, PORT + 10 * number, identities).up() as lab,
        ):
            yield lab


def _together(stages: Mapping[str, Mapping[str, float]]) -> float:
    """Events a second of stages that share the machine, each with what its own rate needs of it."""
    return 1 / sum(1 / found["events_per_s"] for found in stages.values())


def _table(stages: Mapping[str, Mapping[str, Any]], chain: Mapping[str, float]) -> Table:
    """A line a stage."""
    shown = Table("events/s", *WAYS, "ratio")
    rates = {stage: [stages[way][stage]["events_per_s"] for way in WAYS] for stage in STAGES}
    for name, (plaintext, secured) in {**rates, "chain": [chain[way] for way in WAYS]}.items():
        shown.add_row(name, f"{plaintext:,}", f"{secured:,}", f"{secured / plaintext:.2f}")
    return shown


if __name__ == "__main__":
    typer.run(main)
