"""`kappa archive`: maintains the Delta tables of the archive."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.console import Console
from rich.progress import track
from rich.table import Table

from infra.errors import UserError
from jobs.runtime.logs import configure_logs
from jobs.runtime.settings import Settings, load_storage_settings
from ops.launcher import topics_of
from ops.repeat import repeat

if TYPE_CHECKING:
    from jobs.archive.maintenance import Maintenance

app = typer.Typer(help="Maintain the Delta tables of the archive.", no_args_is_help=True)


@app.callback()
def main() -> None:
    """Maintain the Delta tables of the archive."""


@app.command("maintain")
def maintain_tables(
    generation: Annotated[str | None, typer.Option(help="Whose tables. [live]")] = None,
    every: Annotated[str | None, typer.Option(help="Do it again and again, e.g. 1d, until SIGTERM.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Delete days that are older than `archive_retention` of infra/topics.yaml, join small files, and delete files
    that no version of the last week needs. The jobs may go on writing meanwhile, and readers reading.

    Run it daily. With --every it also serves /metrics and /healthz.

    Example: kappa archive maintain --json
    """
    settings = load_storage_settings(generation=generation)
    configure_logs(settings)
    repeat(every, lambda: _print(_maintain(settings), as_json=as_json))


def _maintain(settings: Settings) -> Sequence["Maintenance"]:
    """Maintain the tables of a generation, in a session of Spark of its own: between two rounds nothing is held.

    Raises UserError if there is none.
    """
    from delta.tables import DeltaTable

    from jobs.archive.maintenance import maintain
    from jobs.archive.tables import tables
    from jobs.runtime.session import session

    with session(settings.query_of("archive.maintain"), settings) as spark:
        declared = {settings.delta_of(table.name): table for table in tables(topics_of(settings))}
        present = {path: table for path, table in declared.items() if DeltaTable.isDeltaTable(spark, path)}
        if not present:
            raise UserError(
                f"KAPPA_DELTA={settings.delta_of('')}: no table there; has the archive job run with this setting?"
            )
        progress = track(present.items(), "maintaining", console=Console(stderr=True), transient=True)
        return [maintain(spark, table, path) for path, table in progress]


def _print(done: Sequence["Maintenance"], *, as_json: bool) -> None:
    if as_json:
        typer.echo(orjson.dumps([asdict(one) for one in done], option=orjson.OPT_INDENT_2))
        return
    table = Table("table", "days deleted", "files before", "files now", "removed from disk", "begins")
    for one in done:
        counts = (one.days_deleted, one.files_before, one.files_after, one.removed_from_disk)
        table.add_row(one.table, *map(str, counts), str(min(one.oldest.values(), default="")))
    Console().print(table)
