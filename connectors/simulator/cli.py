"""`kappa simulate`: a telco cloud with faults, into Kafka."""

import signal
from datetime import UTC, datetime
from pathlib import Path
from threading import Event
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.live import Live
from rich.table import Table

from connectors.producer import CollectorProducer
from connectors.simulator import feed
from connectors.simulator.faults import FORM, KINDS, SECOND, duration, parse
from connectors.simulator.feed import Progress
from connectors.simulator.simulation import Settings, Simulation
from connectors.simulator.truth import Truth
from infra.errors import UserError

app = typer.Typer()
console = Console(stderr=True)

REFRESH_RECORDS = 50
FAULT_HELP = f"A fault: {FORM}. Kinds: {', '.join(KINDS)}. Repeat for more."


@app.command()
def simulate(
    machines: Annotated[int, typer.Option(help="Hypervisors and virtual machines in all.")] = 28,
    sites: Annotated[int, typer.Option(help="Sites that they stand at.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed and start give the same bytes.")] = 1,
    scrape_interval: Annotated[str, typer.Option(help="Time between two scrapes of a machine.")] = "5s",
    length: Annotated[str | None, typer.Option("--duration", help="How long; without it until Ctrl-C.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help=FAULT_HELP)] = None,
    truth: Annotated[Path, typer.Option(help="Folder for what really happened.")] = Path(".kappa/truth"),
    bootstrap: Annotated[
        str, typer.Option(envvar="KAPPA_KAFKA_BOOTSTRAP", help="Kafka's addresses.")
    ] = "127.0.0.1:9092",
    start: Annotated[str | None, typer.Option(help="When it begins, ISO 8601 or `now`. Needs --speed max.")] = None,
    speed: Annotated[str, typer.Option(help="`live`: by the wall clock; `max`: as fast as it goes.")] = "live",
    topic_format: Annotated[str, typer.Option(help="`otlp`, or `lines`: one event a record.")] = "otlp",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout, no progress.")] = False,
) -> None:
    """Simulate a telco cloud: metrics, logs and inventory into Kafka, faults on demand, the truth into a folder.

    Example: kappa simulate --duration 5m --fault cpu_hog:vm-17@+60s --fault silence:vm-05@+90s/60s

    With `--speed max` event time is compressed; the topics must then keep the sender's time (CreateTime).
    """
    if speed not in ("live", "max"):
        raise UserError(f"speed {speed!r}: use live or max")
    settings = Settings(
        start_unix_nano=_start(start, speed),
        duration=None if length is None else duration(length, "duration"),
        machines=machines,
        sites=sites,
        seed=seed,
        scrape_interval=duration(scrape_interval, "scrape-interval"),
        faults=tuple(parse(spec) for spec in fault or ()),
        format=topic_format,
    )
    if speed == "max" and settings.duration is None:
        raise UserError("duration: is missing; with --speed max say how much to simulate, for example --duration 1h")
    simulation = Simulation(settings)
    producer = CollectorProducer(bootstrap, simulation.topics())
    stop = _stop_on_signals()
    with Truth(truth, simulation) as record, Live(console=console, refresh_per_second=4) as screen:
        if not as_json:
            screen.update(_status(simulation, Progress(), record))

        def show(progress: Progress) -> None:
            if not as_json and progress.records % REFRESH_RECORDS == 0:
                screen.update(_status(simulation, progress, record))

        progress = feed.run(simulation, producer, record, speed == "live", stop, show)
        if not as_json:
            screen.update(_status(simulation, progress, record))
    if as_json:
        result = {**record.totals.facts(), "records": progress.records, "truth": str(truth)}
        typer.echo(orjson.dumps(result).decode())


def _start(text: str | None, speed: str) -> int:
    if text is None or text == "now":
        return int(datetime.now(UTC).timestamp()) * SECOND
    if speed == "live":
        raise UserError(f"start {text!r}: a live simulation starts now; add --speed max or leave --start out")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"start {text!r}: write ISO 8601, for example 2026-01-31T06:00:00Z") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * SECOND


def _stop_on_signals() -> Event:
    stop = Event()

    def handle(*_: Any) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, handle)
    signal.signal(signal.SIGINT, handle)
    return stop


def _status(simulation: Simulation, progress: Progress, truth: Truth) -> Table:
    table = Table.grid(padding=(0, 2))
    reached = datetime.fromtimestamp(progress.reached_ms / 1000, UTC) if progress.reached_ms else None
    offset = progress.reached_ms * 1_000_000 - simulation.settings.start_unix_nano
    active = [fault.spec for fault in simulation.settings.faults if fault.active(offset)]
    counts = ", ".join(f"{count:,} {name}" for name, count in truth.totals.facts().items())
    table.add_row("time", f"{reached:%Y-%m-%d %H:%M:%S} UTC" if reached else "starting")
    table.add_row("records", f"{progress.records:,} from {len(simulation.machines)} machines")
    table.add_row("events", counts)
    table.add_row("faults", ", ".join(active) or "none now")
    return table
