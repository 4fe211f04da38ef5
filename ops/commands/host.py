"""`kappa host`: sends this machine's metrics and log lines to Kafka."""

import platform
from pathlib import Path
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.live import Live

from connectors.host.collector import Collector, Settings
from connectors.kafka.producer import CollectorProducer
from connectors.shutdown import stop_on_signals

app = typer.Typer()
console = Console(stderr=True)


@app.command()
def host(
    *,
    machine: Annotated[str | None, typer.Option(help="Its name; by default the host name.")] = None,
    interval: Annotated[float, typer.Option(help="Seconds between two samples of the metrics.")] = 5.0,
    file: Annotated[list[Path] | None, typer.Option(help="A log file to follow from now on. Repeat for more.")] = None,
    journal: Annotated[bool, typer.Option(help="Follow journald, where there is one.")] = True,
    top: Annotated[int, typer.Option(help="Process groups with metrics: those with most memory.")] = 5,
    bootstrap: Annotated[
        str, typer.Option(envvar="KAPPA_KAFKA_BOOTSTRAP", help="Kafka's addresses.")
    ] = "127.0.0.1:9092",
    topic_prefix: Annotated[str, typer.Option(help="Put before the name of each topic.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print what was sent as JSON at the end.")] = False,
) -> None:
    """Send this machine's telemetry until Ctrl-C or SIGTERM: CPU, memory, load, disks, network, processes, log lines.

    Example: kappa host --interval 2 --file /var/log/syslog
    """
    settings = Settings(machine or platform.node(), interval, tuple(file or ()), journal, top, topic_prefix)
    settings.check()
    stop = stop_on_signals()
    collector = Collector(settings, CollectorProducer(bootstrap, settings.topics(), stop))
    if as_json:
        collector.run(stop)
        typer.echo(orjson.dumps(collector.counts).decode())
        return
    with Live(get_renderable=lambda: _status(collector), console=console, refresh_per_second=1):
        collector.run(stop)


def _status(collector: Collector) -> str:
    counts = collector.counts
    return f"{collector.settings.machine}: {counts.points:,} data points, {counts.lines:,} log lines"
