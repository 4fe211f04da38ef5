"""`kappa archive`: maintains the Delta tables of the archive."""

from dataclasses import asdict
from typing import Annotated

import orjson
import typer
from delta.tables import DeltaTable
from rich.console import Console
from rich.progress import track
from rich.table import Table

from infra.errors import UserError
from jobs.archive.maintenance import Maintenance, optimize
from jobs.archive.tables import tables
from jobs.runtime.logs import configure_logs
from jobs.runtime.session import open_session
from jobs.runtime.settings import load_settings
from ops.launcher import topics_of

app = typer.Typer(help="Maintain the Delta tables of the archive.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Maintain the Delta tables of the archive."""


@app.command("optimize")
def optimize_tables(
    generation: Annotated[str | None, typer.Option(help="Whose tables. [live]")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Compact small files and delete those that are no longer needed. The jobs may go on writing meanwhile.

    Run it daily; former versions stay readable for a week (delta.deletedFileRetentionDuration of the table).
    Between two runs a partition of a table has at most some 50 small files: the archive job compacts them.

    Example: kappa archive optimize --json
    """
    settings = load_settings(generation=generation)
    configure_logs(settings)
    spark = open_session(settings.query_of("archive.optimize"), settings)
    paths = {table.name: settings.delta_of(table.name) for table in tables(topics_of(settings))}
    present = {name: path for name, path in paths.items() if DeltaTable.isDeltaTable(spark, path)}
    if not present:
        raise UserError(
            f"KAPPA_DELTA={settings.delta_of('')}: no table there; has the archive job run with this setting?"
        )
    progress = track(present.items(), "optimizing", console=Console(stderr=True), transient=True)
    done = [optimize(spark, name, path) for name, path in progress]
    spark.stop()
    if as_json:
        typer.echo(orjson.dumps([asdict(one) for one in done], option=orjson.OPT_INDENT_2))
    else:
        Console().print(_table(done))


def _table(done: list[Maintenance]) -> Table:
    table = Table("table", "files before", "files now", "removed from disk")
    for one in done:
        table.add_row(one.table, *(str(count) for count in (one.files_before, one.files_after, one.removed_from_disk)))
    return table
