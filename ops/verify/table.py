"""The comparison with the truth, to be read by a person."""

import time

from rich.console import Console
from rich.table import Table

from ops.verify.observer import Result


def show(console: Console, result: Result, seconds: float) -> None:
    """Print a line a fault, then the totals; `seconds` is how long it all took."""
    console.print(_table(result))
    events = result.events
    console.print(
        f"{events.events:,} events in, {events.lost} lost, {events.duplicated} duplicated; "
        f"{len(result.false_alarms)} false alarms; {seconds:.0f} s in all"
    )
    for alarm in result.false_alarms:
        console.print(f"  [yellow]false alarm[/] {alarm.machine}: {alarm.text}")


def _table(result: Result) -> Table:
    table = Table("fault", "machine", "when (UTC)", "the chain said", "after", title="What happened and what was found")
    for row in result.rows:
        when = time.strftime("%H:%M:%S", time.gmtime(row.start_unix_nano / 1e9))
        said = f"[green]{row.answer}[/]\n[dim]{row.text}" if row.found else "[red]nothing"
        delay = row.delay_s if row.seen_s is None else row.seen_s
        table.add_row(row.kind, row.machine, when, said, "" if delay is None else f"{delay:.0f} s")
    return table
