"""`kappa`: the one command line of the project."""

import sys
from typing import Annotated, ClassVar

import typer

from infra.errors import UserError
from infra.version import version
from ops.lazy_commands import LazyCommand, LazyGroup


class Commands(LazyGroup):
    """The commands of `kappa`, in the order in which `--help` lists them."""

    lazy: ClassVar = {
        "run": LazyCommand("ops.commands.run", "Run a job of the chain, or all of them."),
        "settings": LazyCommand("ops.commands.settings", "List every setting with its value."),
        "infra": LazyCommand("ops.commands.infra", "Embedded Kafka and Elasticsearch: real servers, no containers."),
        "topics": LazyCommand("ops.commands.infra", "The topics of the map, compared with the broker.", "topics_app"),
        "inventory": LazyCommand("ops.commands.inventory", "Where each machine stands and what it is."),
        "archive": LazyCommand("ops.commands.archive", "The upkeep of the Delta tables."),
        "detector": LazyCommand("ops.commands.detector", "Tell the detector what is normal and what not to alert."),
        "rejected": LazyCommand("ops.commands.rejected", "Dead letters: list, show and retry them."),
        "simulate": LazyCommand("ops.simulator.cli", "Simulate a telco cloud with faults on demand."),
        "host": LazyCommand("ops.commands.host", "Stream this machine's metrics and log lines."),
        "demo": LazyCommand("ops.demo.cli", "Run the whole chain here and break a simulated cloud on purpose."),
        "quality": LazyCommand("ops.quality.cli", "Score the detector on data whose anomalies are known."),
        "replay": LazyCommand("ops.replay.cli", "Replay the log through other code or settings, compare, promote."),
        "savepoint": LazyCommand("ops.savepoints.cli", "Keep a job as it stands, and start from there again."),
        "state": LazyCommand("ops.state.cli", "What the detector has learned of each series."),
        "verify": LazyCommand("ops.verify.cli", "Compare the chain's answers with the simulator's truth."),
    }


app = typer.Typer(
    cls=Commands,
    help="Telemetry in, novelties out: one code path for live and old data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kappa {version()}")
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Telemetry in, novelties out: one code path for live and old data."""


def main() -> None:
    """The entry point: what only a person can mend becomes one line and exit code 2."""
    try:
        app()
    except UserError as error:
        typer.echo(f"kappa: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
