"""`kappa`: the one command line of the project."""

import signal
import sys
import threading
from enum import StrEnum
from importlib import import_module
from typing import Annotated, NoReturn

import typer

from infra.errors import UserError
from jobs.runtime.logs import configure_logs
from jobs.runtime.settings import Settings, load_settings
from jobs.runtime.supervisor import supervise
from ops import launcher
from ops.commands import archive as archive_cli
from ops.commands import detector as detector_cli
from ops.commands import host as host_cli
from ops.commands import infra as infra_cli
from ops.commands import inventory as inventory_cli
from ops.commands import rejected as rejected_cli
from ops.demo import cli as demo_cli
from ops.quality import cli as quality_cli
from ops.replay import cli as replay_cli
from ops.replay.registry import CHAIN
from ops.savepoints import cli as savepoint_cli
from ops.simulator import cli as simulator_cli
from ops.state import cli as state_cli
from ops.verify import cli as verify_cli

app = typer.Typer(
    help="Telemetry in, novelties out: one code path for live and old data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(infra_cli.app, name="infra")
app.add_typer(infra_cli.topics_app, name="topics")
app.add_typer(inventory_cli.app, name="inventory")
app.add_typer(archive_cli.app, name="archive")
app.add_typer(detector_cli.app, name="detector")
app.add_typer(rejected_cli.app, name="rejected")
app.add_typer(simulator_cli.app)
app.add_typer(host_cli.app)
app.add_typer(demo_cli.app)
app.add_typer(quality_cli.app)
app.add_typer(replay_cli.app, name="replay")
app.add_typer(savepoint_cli.app, name="savepoint")
app.add_typer(state_cli.app, name="state")
app.add_typer(verify_cli.app)


class Step(StrEnum):
    """The jobs of the chain."""

    enrichment = "enrichment"
    statistics = "statistics"
    detector = "detector"
    archive = "archive"
    indexer = "indexer"
    all = "all"


@app.command()
def run(
    job: Annotated[Step, typer.Argument(help="Which job; all: every job, as supervised processes.")],
    *,
    kafka_bootstrap: Annotated[str | None, typer.Option(help="Kafka's addresses. [127.0.0.1:9092]")] = None,
    elasticsearch_url: Annotated[str | None, typer.Option(help="[http://127.0.0.1:9200]")] = None,
    generation: Annotated[
        str | None, typer.Option(help="Whose topics, checkpoints, tables and indices. [live]")
    ] = None,
    realtime: Annotated[
        bool,
        typer.Option(help="enrichment only: milliseconds, at least once. See docs/explanation/real-time.md."),
    ] = False,
    metrics_port: Annotated[int | None, typer.Option(help="Of /metrics and /healthz; 0: any free one. [9400]")] = None,
) -> None:
    """Run a job until SIGTERM; it then ends its batch and exits with 0.

    With KAPPA_PROFILE=small, `all` is one process with one Spark application: 2 GB in place of 5.

    Every setting has an environment variable, KAPPA_...; `kappa settings` lists them.

    Example: kappa run detector --metrics-port 9402
    """
    if realtime and job is not Step.enrichment:
        raise UserError(f"--realtime: {job.value} has no such mode, only enrichment has")
    settings = load_settings(
        kafka_bootstrap=kafka_bootstrap,
        elasticsearch_url=elasticsearch_url,
        generation=generation,
        metrics_port=metrics_port,
    )
    configure_logs(settings)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    if job is not Step.all:
        launcher.run(job.value, settings, stop, module="realtime" if realtime else "job")
    elif settings.profile == "small":
        import_module("ops.single_application").run(settings, stop)
    else:
        _run_all(settings, stop)


def _run_all(settings: Settings, stop: threading.Event) -> NoReturn:
    planned = launcher.registry_for(settings, stop).generations.get(settings.generation)
    jobs = planned.jobs if planned else CHAIN
    raise SystemExit(supervise(jobs, settings, stop))


@app.command("settings")
def show_settings() -> None:
    """List every setting with its value: flags aside, what a job would run with.

    Example: KAPPA_TRIGGER_SECONDS=5 kappa settings
    """
    for name, value in load_settings().model_dump().items():
        shown = "********" if "password" in name and value else value
        typer.echo(f"KAPPA_{name.upper()}={'' if shown is None else shown}")


def main() -> None:
    """The entry point: what only a person can mend becomes one line and exit code 2."""
    try:
        app()
    except UserError as error:
        typer.echo(f"kappa: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
