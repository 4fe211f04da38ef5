"""Prints the comparison of the chain's answers with the truth as a table."""

import time

from rich.console import Console
from rich.table import Table

from ops.verify.observer import Result


def show(console: Console, result: Result, seconds: float) -> None:
    """Print a row for each fault, then the totals; `seconds` is the duration of the whole run."""
    console.print(_table(result))
    events = result.events
    console.print(
        f"{events.events:,} events in, {events.lost} lost, {events.duplicated} duplicated; "
        f"{len(result.false_alarms)} false alarms; {seconds:.0f} s in all"
    )
    for alarm in result.false_alarms:
        console.print(f"  [yellow]false alarm[/] {alarm.machine}: {alarm.text}")


def _table(result: Result) -> Table:
    table = Table("fault", "machine", "when (UTC)", "answer", "after", title="Faults and the chain's answers")
    for row in result.rows:
        when = time.strftime("%H:%M:%S", time.gmtime(row.start_unix_nano / 1e9))
        answer = f"[green]{row.answer}[/]\n[dim]{row.text}" if row.found else "[red]nothing"
        delay = row.delay_s if row.seen_s is None else row.seen_s
        table.add_row(row.kind, row.machine, when, answer, "" if delay is None else f"{delay:.0f} s")
    return table
