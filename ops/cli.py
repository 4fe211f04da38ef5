"""`kappa`: the one command line of the project."""

import sys
from typing import Annotated, Any, ClassVar, NoReturn

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
        "topics": LazyCommand("ops.commands.infra", "List, compare and create topics.", "topics_app"),
        "acl": LazyCommand("ops.acl.cli", "What each job and person may do in Kafka and Elasticsearch."),
        "inventory": LazyCommand("ops.commands.inventory", "Load and show the facts of machines."),
        "archive": LazyCommand("ops.commands.archive", "Maintain the Delta tables of the archive."),
        "detector": LazyCommand(
            "ops.commands.detector",
            "Explain, backtest and correct the detector.",
        ),
        "notifier": LazyCommand("ops.commands.notifier", "Check a file of routes, see what it sends, send a test."),
        "rejected": LazyCommand("ops.commands.rejected", "Dead letters: list, show and retry them."),
        "simulate": LazyCommand("ops.simulator.cli", "Simulate a telco cloud with faults on demand."),
        "host": LazyCommand("ops.commands.host", "Send this machine's metrics and log lines to Kafka."),
        "demo": LazyCommand("ops.demo.cli", "Run the whole chain here, with faults in a simulated cloud."),
        "quality": LazyCommand("ops.quality.cli", "Score the detector on data with known anomalies."),
        "console": LazyCommand("ops.console.cli", "Serve pages that show the chain and what it has found."),
        "replay": LazyCommand("ops.replay.cli", "Replay the log through other code or settings, compare, promote."),
        "rescale": LazyCommand("ops.rescale.cli", "More partitions, without losing what was learned."),
        "site": LazyCommand("ops.site.cli", "Bring the telemetry of several sites to a centre."),
        "backfill": LazyCommand("ops.backfill.cli", "Run the jobs over the archive as a batch, without Kafka between."),
        "savepoint": LazyCommand("ops.savepoints.cli", "Save a job's checkpoint and start from it again."),
        "upgrade": LazyCommand("ops.upgrade.cli", "Guard an upgrade: note what was, watch the new image, go back."),
        "state": LazyCommand("ops.state.cli", "Show what the detector has learned of each series."),
        "sql": LazyCommand("ops.sql.cli", "Ask the Delta tables by SQL."),
        "capacity": LazyCommand("ops.capacity.cli", "Say what a fleet needs: cores, memory, partitions, disks."),
        "autoscale": LazyCommand("ops.capacity.autoscale", "Watch the running jobs, and say what each needs."),
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
    """The entry point: a UserError, or the lack of a right, becomes one line on stderr and exit code 2."""
    try:
        app()
    except UserError as error:
        _refuse(str(error))
    except Exception as error:
        # By its name: the client's library takes a moment to load, and `--help` doesn't need it.
        if type(error).__name__ == "KafkaException" and (line := _missing_right(error)):
            _refuse(line)
        raise


def _missing_right(error: Any) -> str | None:
    from connectors.kafka.access import missing_right

    return missing_right(error)


def _refuse(line: str) -> NoReturn:
    typer.echo(f"kappa: {line}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
