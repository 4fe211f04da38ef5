"""`make bench-peers`: our enrichment and statistics beside Flink SQL, Kafka Streams and stock Spark, in one run.

Real broker, every stage as a process of its own. A backlog shows what an event costs and whether all say the same of
each window; a steady load how late each one's results are.
"""

import tempfile
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console

from tests.bench.chain.trial import Shape
from tests.bench.peers.engines import Flink, KafkaStreams, Peer, StockSpark
from tests.bench.peers.trial import ROUNDS, beside, versus

app = typer.Typer(add_completion=False)
console = Console(stderr=True)


class Name(StrEnum):
    """A peer."""

    FLINK = Flink.name
    STREAMS = KafkaStreams.name
    SPARK = StockSpark.name


@app.command()
def main(
    peer: Annotated[list[Name], typer.Option(help="A peer; several may be named.")] = list(Name),  # noqa: B006
    rate: Annotated[int, typer.Option(help="Events a second of the load that becomes a backlog; 0: none.")] = 40_000,
    seconds: Annotated[int, typer.Option(help="Seconds of that load, and of a measurement of latency.")] = 180,
    latency_rate: Annotated[int, typer.Option(help="Events a second while latency is measured; 0: not.")] = 5_000,
    warm: Annotated[int, typer.Option(help="Seconds at that rate before.")] = 120,
    machines: Annotated[int, typer.Option(help="Machines, of some 31 series each.")] = 1_000,
    rounds: Annotated[int, typer.Option(help="How often the backlog is read.")] = ROUNDS,
    memory: Annotated[str, typer.Option(help="KAPPA_DRIVER_MEMORY.")] = "2g",
    flink: Annotated[Path, typer.Option(help="A Python that has Flink.")] = Path(".venv-flink/bin/python"),
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/peers.json"),
) -> None:
    """Measure; fails if a peer's results are others than ours.

    Example: python -m tests.bench.peers --peer streams --rate 20000 --seconds 120 --rounds 1
    """
    report.parent.mkdir(exist_ok=True)
    shape = Shape(machines, warm, seconds, {"KAPPA_DRIVER_MEMORY": memory})
    facts: dict[str, Any] = {"passed": True}
    with tempfile.TemporaryDirectory() as folder:
        peers = [_made(name, flink, Path(folder)) for name in dict.fromkeys(peer)]
        if rate:
            facts |= versus(shape, rate, peers, rounds)
            report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
        if latency_rate:
            facts["latency"] = beside(shape, latency_rate, peers)
            report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    console.print(facts)
    if not facts["passed"]:
        raise typer.Exit(1)


def _made(name: Name, flink: Path, target: Path) -> Peer:
    match name:
        case Name.FLINK:
            return Flink(flink)
        case Name.STREAMS:
            return KafkaStreams.built(target)
        case Name.SPARK:
            return StockSpark()


if __name__ == "__main__":
    app()
