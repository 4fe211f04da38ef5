"""`kappa state`: what the detector has learned."""

import sys
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from jobs.runtime.session import open_session
from jobs.runtime.settings import load_storage_settings
from ops.state.state import Series, matching, series, top

app = typer.Typer(help="What the detector knows of each series, read from its checkpoint.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 160)
SHOWN = ("machine", "series", "unit", "seen", "last", "mu", "surprise", "changes", "phase")

Generation = Annotated[str | None, typer.Option(help="Whose detector. [live]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: every field of the model.")]


@app.command()
def show(
    text: Annotated[str, typer.Argument(help="A part of the name of a series.")],
    machine: Annotated[str | None, typer.Option(help="Only of this machine.")] = None,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Show what is known of a series, on each machine that has it.

    Example: kappa state show system.cpu.utilization --machine vm-05
    """
    _print(matching(_read(generation), text, machine), as_json)


@app.command("top")
def show_top(
    by: Annotated[str, typer.Option(help="A field of the model: surprise, sustained, changes, seen ...")] = "surprise",
    count: Annotated[int, typer.Option("-n", min=1, help="How many.")] = 10,
    generation: Generation = None,
    as_json: Json = False,
) -> None:
    """Show the series with the greatest value of something.

    Example: kappa state top --by surprise -n 5
    """
    _print(top(_read(generation), by, count), as_json)


def _read(generation: str | None) -> list[Series]:
    settings = load_storage_settings(generation=generation)
    spark = open_session("kappa.state", settings)
    try:
        return series(spark, settings)
    finally:
        spark.stop()


def _print(found: list[Series], as_json: bool) -> None:
    if as_json:
        typer.echo(orjson.dumps(found, option=orjson.OPT_INDENT_2).decode())
        return
    table = Table(*SHOWN, box=None, header_style="bold")
    for one in found:
        table.add_row(*(_cell(one[name]) for name in SHOWN))
    console.print(table)


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)
