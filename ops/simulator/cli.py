"""`kappa simulate`: sends the telemetry of a simulated telco cloud, with faults on demand, to Kafka."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from connectors.kafka.producer import CollectorProducer
from connectors.shutdown import stop_on_signals
from infra.contract.topics import load_topics
from infra.errors import UserError
from infra.settings import load_settings
from jobs.runtime import settings as runtime
from ops.simulator import feed
from ops.simulator.faults import FORM, KINDS, SECOND, duration, parse
from ops.simulator.feed import Progress
from ops.simulator.lateness import DecidedLateness
from ops.simulator.simulation import Settings, Simulation
from ops.simulator.truth import WINDOW, Truth

app = typer.Typer()
console = Console(stderr=True)

FAULT_HELP = escape(f"A fault: {FORM}. Kinds: {', '.join(KINDS)}. Repeat for more.")


@app.command()
def simulate(
    *,
    machines: Annotated[int, typer.Option(help="Hypervisors and virtual machines in all.")] = 28,
    sites: Annotated[int, typer.Option(help="Sites of the machines.")] = 2,
    seed: Annotated[int, typer.Option(help="The same seed and start give the same bytes.")] = 1,
    scrape_interval: Annotated[str, typer.Option(help="Time between two scrapes of a machine.")] = "5s",
    log_batch: Annotated[
        str | None, typer.Option(help="How long a collector gathers log lines; by default, the scrape interval.")
    ] = None,
    jitter: Annotated[str, typer.Option(help="How late records usually are at most; most are by far less.")] = "8s",
    length: Annotated[str | None, typer.Option("--duration", help="How long; without it until Ctrl-C.")] = None,
    fault: Annotated[list[str] | None, typer.Option(help=FAULT_HELP)] = None,
    truth: Annotated[Path | None, typer.Option(help="The folder for the truth. [KAPPA_HOME/truth]")] = None,
    bootstrap: Annotated[
        str, typer.Option(envvar="KAPPA_KAFKA_BOOTSTRAP", help="Kafka's addresses.")
    ] = "127.0.0.1:9092",
    start: Annotated[
        str | None, typer.Option(help="With --speed max: ISO 8601; by default such that it ends now.")
    ] = None,
    speed: Annotated[str, typer.Option(help="`live`: by the wall clock; `max`: as fast as it goes.")] = "live",
    topic_format: Annotated[str, typer.Option(help="`otlp`, or `lines`: one event a record.")] = "otlp",
    topic_prefix: Annotated[str, typer.Option(help="Put before the name of each topic.")] = "",
    name_prefix: Annotated[str, typer.Option(help="Put before the name of each machine and site.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout, no progress.")] = False,
) -> None:
    """Simulate a telco cloud: metrics, logs and inventory into Kafka, faults on demand, the truth into a folder.

    Example: kappa simulate --duration 5m --fault cpu_hog:vm-17@+60s --fault silence:vm-05@+90s/60s

    With `--speed max` event time is compressed; the topics must then keep the sender's time (CreateTime).
    """
    if speed not in ("live", "max"):
        raise UserError(f"speed {speed!r}: use live or max")
    nanos = None if length is None else duration(length, "duration")
    settings = Settings(
        start_unix_nano=_start(start, nanos, live=speed == "live"),
        duration=nanos,
        machines=machines,
        sites=sites,
        seed=seed,
        scrape_interval=duration(scrape_interval, "scrape-interval"),
        log_batch=None if log_batch is None else duration(log_batch, "log-batch"),
        jitter=duration(jitter, "jitter"),
        faults=tuple(parse(spec) for spec in fault or ()),
        format=topic_format,
        topic_prefix=topic_prefix,
        name_prefix=name_prefix,
    )
    simulation = Simulation(settings)
    folder = truth or load_settings().home / "truth"
    # Where topics have other names, or another clock than the broker's, no chain judges what comes.
    decided = speed == "live" and not topic_prefix
    lateness = DecidedLateness(bootstrap, load_topics(runtime.load_settings().topics_file)) if decided else None
    stop = stop_on_signals()
    producer = CollectorProducer(bootstrap, simulation.topics(), stop)
    with Truth(folder, simulation, lateness) as record, _screen(simulation, record, hidden=as_json) as show:
        progress = feed.run(simulation, producer, record, live=speed == "live", stop=stop, report=show)
    if as_json:
        result = {**record.totals.as_dict(), "records": progress.records, "truth": str(folder)}
        typer.echo(orjson.dumps(result).decode())


def _start(text: str | None, length: int | None, live: bool) -> int:
    """The start of the simulation in Unix ns, a whole second: soon if live, else as given or such that it ends now.

    A live one starts with the next window: its faults always fall into windows in the same way, and nothing is late.
    """
    now = int(datetime.now(UTC).timestamp()) * SECOND
    if live and text is not None:
        raise UserError(f"start {text!r}: a live simulation starts now; add --speed max or leave --start out")
    if live:
        return now - now % WINDOW + WINDOW
    if length is None:
        raise UserError("duration: is missing; with --speed max say how much to simulate, for example --duration 1h")
    begin = now - length if text is None else _parse_time(text)
    if begin + length > now:
        raise UserError(f"start {text!r}: the simulation would end in the future; start earlier or shorten --duration")
    return begin


def _parse_time(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise UserError(f"start {text!r}: write ISO 8601, for example 2026-01-31T06:00:00Z") from error
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()) * SECOND


@contextmanager
def _screen(simulation: Simulation, truth: Truth, hidden: bool) -> Iterator[Callable[[Progress], None]]:
    """Show a live status on the terminal; gives the function to call with the progress."""
    if hidden:
        yield lambda progress: None
        return
    latest = Progress()

    def show(progress: Progress) -> None:
        nonlocal latest
        latest = progress

    with Live(get_renderable=lambda: _status(simulation, latest, truth), console=console, refresh_per_second=2):
        yield show


def _status(simulation: Simulation, progress: Progress, truth: Truth) -> Table:
    table = Table.grid(padding=(0, 2))
    reached = datetime.fromtimestamp(progress.reached_ms / 1000, UTC) if progress.reached_ms else None
    offset = progress.reached_ms * 1_000_000 - simulation.settings.start_unix_nano
    active = [fault.spec for fault in simulation.settings.faults if fault.active(offset)]
    counts = ", ".join(f"{count:,} {name}" for name, count in truth.totals.as_dict().items())
    table.add_row("time", f"{reached:%Y-%m-%d %H:%M:%S} UTC" if reached else "starting")
    table.add_row("records", f"{progress.records:,} from {len(simulation.machines)} machines")
    table.add_row("events", counts)
    table.add_row("faults", ", ".join(active) or "none now")
    return table
