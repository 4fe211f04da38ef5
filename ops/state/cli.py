"""`kappa state`: what the detector has learned, and what the open windows hold."""

import sys
from datetime import UTC, datetime
from typing import Annotated

import orjson
import typer
from rich.console import Console
from rich.table import Table

from infra.errors import UserError
from jobs.runtime.session import session
from jobs.runtime.settings import load_settings, load_storage_settings
from ops.job_addresses import JobAddresses, MetricsUrl
from ops.state.live import NotAnsweringError, ask, live_series
from ops.state.state import Series, matching, series, top

app = typer.Typer(help="What the detector knows of each series, and what open windows hold.", no_args_is_help=True)
console = Console(width=None if sys.stdout.isatty() else 160)
errors = Console(stderr=True)
SHOWN = ("machine", "series", "unit", "seen", "last", "mu", "surprise", "changes", "phase")

Generation = Annotated[str | None, typer.Option(help="Whose detector. [live]")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: every field of the model.")]


@app.command()
def show(
    text: Annotated[str, typer.Argument(help="A part of the name of a series.")],
    machine: Annotated[str | None, typer.Option(help="Only of this machine.")] = None,
    generation: Generation = None,
    metrics_url: MetricsUrl = None,
    as_json: Json = False,
) -> None:
    """Show what is known of a series, on each machine that has it.

    Of one machine the running detector is asked, which answers at once. Else, and where it doesn't answer, its
    checkpoint is read, for which Spark is started.

    Example: kappa state show system.cpu.utilization --machine vm-05
    """
    _print(matching(_known(machine, generation, metrics_url), text, machine), as_json)


@app.command("windows")
def show_windows(
    machine: Annotated[str, typer.Argument(help="A machine.")],
    metrics_url: MetricsUrl = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what has come of a machine's series in the windows that are open, as the running statistics have it.

    Example: kappa state windows vm-05
    """
    try:
        answer = ask(JobAddresses(load_settings(), metrics_url), "statistics", "/windows", machine=machine)
    except NotAnsweringError as error:
        raise UserError(f"statistics: {error}; is it running? give --metrics-url if it is elsewhere") from None
    if as_json:
        typer.echo(orjson.dumps(answer, option=orjson.OPT_INDENT_2).decode())
        return
    table = Table("series", "window, s", "from", "count", "mean", "min", "max", box=None, header_style="bold")
    for one in answer["series"]:
        for window in one["windows"]:
            begin = datetime.fromtimestamp(window["start_unix_nano"] / 1e9, UTC).strftime("%H:%M:%S")
            values = (window.get(name) for name in ("count", "mean", "min", "max"))
            table.add_row(one["series"], f"{window['size_seconds']:g}", begin, *map(_cell, values))
    console.print(table)


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


def _known(machine: str | None, generation: str | None, metrics_url: str | None) -> list[Series]:
    """The series of a machine from the running detector of the live generation; else all from the checkpoint."""
    if machine and generation is None:
        try:
            return live_series(JobAddresses(load_settings(), metrics_url), machine)
        except NotAnsweringError as error:
            errors.print(f"the detector: {error}; its checkpoint is read instead", soft_wrap=True)
    return _read(generation)


def _read(generation: str | None) -> list[Series]:
    settings = load_storage_settings(generation=generation)
    with session("kappa.state", settings) as spark:
        return series(spark, settings)


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
