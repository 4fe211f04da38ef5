"""`kappa`: the one command line of the project."""

import sys

import typer

from infra.errors import UserError
from ops.commands import archive as archive_cli
from ops.commands import detector as detector_cli
from ops.commands import host as host_cli
from ops.commands import infra as infra_cli
from ops.commands import inventory as inventory_cli
from ops.commands import rejected as rejected_cli
from ops.commands import run as run_cli
from ops.commands import settings as settings_cli
from ops.demo import cli as demo_cli
from ops.quality import cli as quality_cli
from ops.replay import cli as replay_cli
from ops.savepoints import cli as savepoint_cli
from ops.simulator import cli as simulator_cli
from ops.state import cli as state_cli
from ops.verify import cli as verify_cli

app = typer.Typer(
    help="Telemetry in, novelties out: one code path for live and old data.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.add_typer(run_cli.app)
app.add_typer(settings_cli.app)
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


def main() -> None:
    """The entry point: what only a person can mend becomes one line and exit code 2."""
    try:
        app()
    except UserError as error:
        typer.echo(f"kappa: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
