"""`kappa sql`: asks the Delta tables of the promoted generation."""

import sys
from datetime import UTC, datetime
from typing import Annotated, Any

import orjson
import typer
from rich.console import Console
from rich.table import Table

from infra.errors import UserError
from ops.sql.ask import Limits, ask
from ops.sql.csv_text import as_text, write_csv
from ops.sql.examples import EXAMPLES

app = typer.Typer()
console = Console(width=None if sys.stdout.isatty() else 200)
errors = Console(stderr=True)


@app.command()
def sql(
    query: Annotated[str, typer.Argument(help="A SELECT, DESCRIBE or EXPLAIN; without it the tables are listed.")] = "",
    *,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Rows to print at most.")] = 1_000,
    timeout: Annotated[int, typer.Option(min=1, max=3600, help="Seconds that it may take.")] = 60,
    memory: Annotated[int, typer.Option(min=64, help="Megabytes that it may take.")] = 512,
    examples: Annotated[bool, typer.Option("--examples", help="Show queries to begin with.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Ask the Delta tables by SQL (DuckDB's): novelties, incidents, statistics, series, events_rejected.

    `series` is `statistics` with a row for each series of a window. The tables are those that readers see, and can only
    be read.

    Example: kappa sql "SELECT verdict, count(DISTINCT id) AS n FROM novelties GROUP BY verdict"
    """
    if examples:
        for one in EXAMPLES:
            typer.echo(f"-- {one.title}\n{one.sql};\n")
        return
    if as_json and as_csv:
        raise UserError("--csv: doesn't go with --json; give one")
    answer = ask(query, Limits(timeout, memory, limit))
    if as_json:
        typer.echo(orjson.dumps(answer).decode())
    elif not query.strip():
        _show_tables(answer)
    elif as_csv:
        write_csv(answer, sys.stdout)
    else:
        _show(answer)
    if not answer.get("is_complete", True):
        errors.print(f"the first {limit:,} rows; --limit gives more")


def _show(answer: dict[str, Any]) -> None:
    table = Table(*(column["name"] for column in answer["columns"]), box=None, header_style="bold")
    for row in answer["rows"]:
        table.add_row(*("" if value is None else str(as_text(value)) for value in row))
    console.print(table)
    errors.print(f"{len(answer['rows']):,} rows in {answer['seconds']} s")


def _show_tables(answer: dict[str, Any]) -> None:
    table = Table("table", "generation", "version", "committed, UTC", "files", box=None, header_style="bold")
    for one in answer["tables"]:
        committed = datetime.fromtimestamp(one["committed"] / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
        table.add_row(one["name"], one["generation"], str(one["version"]), committed, f"{one['files']:,}")
    console.print(table)
    if answer["missing"]:
        errors.print(f"not there yet: {', '.join(answer['missing'])}")
