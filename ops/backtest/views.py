"""What explanations and backtests look like, to a person and as JSON."""

from collections.abc import Sequence
from datetime import UTC, datetime
from math import exp
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from jobs.detector.novelties import Novelty, where
from ops.backtest.compare import Change, Comparison
from ops.backtest.explain import COMPARED, Explanation
from ops.backtest.orders import Order
from ops.backtest.replay import Alert, Found

FIGURES = ("seen", "last", "mu", "surprise", "changes", "phase")  # of the model that a person is shown, if it has them
MARKS = {"added": "+", "gone": "-", "moved": "~"}


class Report(NamedTuple):
    """What a backtest found: two runs, what was set for the second one, and how they differ."""

    found: Found
    changes: dict[str, str]
    comparison: Comparison

    def json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "set": self.changes,
            "learned_from_unix_nano": self.found.first_unix_nano,
            "until_unix_nano": self.found.last_unix_nano,
            "alerted": {name: len(alerts) for name, alerts in self.found.alerts.items()},
            "same": self.comparison.same,
            "changes": [
                {"kind": kind, "before": before and before._asdict(), "after": after and after._asdict()}
                for kind, before, after in self.comparison.changes
            ],
        }


def print_report(console: Console, report: Report, begin: int, limit: int) -> None:
    """A table of the changes, the first `limit` of them, and their numbers."""
    found, comparison = report.found, report.comparison
    assert found.first_unix_nano is not None and found.last_unix_nano is not None
    if comparison.changes and limit:
        console.print(_changes(comparison.changes[:limit]))
    if (left := len(comparison.changes) - limit) > 0:
        console.print(f"… and {left} more: -n, or --json")
    console.print(f"{_time(begin)} to {_time(found.last_unix_nano)}, learned from {_time(found.first_unix_nano)} on")
    if found.first_unix_nano > begin:
        console.print("what is recorded begins only then: before it, nothing could be alerted")
    before, after = (len(found.alerts[name]) for name in ("before", "after"))
    base = "with the settings as they are" if report.changes else "as recorded"
    changed = " ".join(f"{name}={value}" for name, value in report.changes.items()) or "this code and its settings"
    counts = ", ".join(f"{comparison.count(kind)} {kind}" for kind in ("added", "gone", "moved"))  # type: ignore[arg-type]
    console.print(f"{before} alerts {base}, {after} with {changed}: {counts}, {comparison.same} the same")


def _changes(changes: Sequence[Change]) -> Table:
    table = Table("", "at", "machine", "verdict", "score", "what", box=None, header_style="bold")
    for change in changes:
        one = change.alert
        table.add_row(MARKS[change.kind], _time(one.time_unix_nano), *_shown(one))
        if change.before is not None and change.after is not None:
            table.add_row("", f"was {_time(change.before.time_unix_nano)}", *_shown(change.before), style="dim")
    return table


def _shown(alert: Alert) -> tuple[str, ...]:
    return alert.machine, alert.last_verdict, f"{alert.score:.1f}", alert.text


def explanation_json(found: Explanation, newest: Novelty, orders: Sequence[Order]) -> dict[str, Any]:
    """As JSON; `newest` is the novelty's last record."""
    return {
        "novelty": newest,
        "models": found.models,
        "replayed": found.replayed and found.replayed._asdict(),
        "budgets": [
            {"alarms_per_day": budget, "alert": alert and alert._asdict()} for budget, alert in found.budgets.items()
        ],
        "orders": [{"time_ms": one.time_ms, **one.control} for one in orders],
        "without_orders": found.unordered and found.unordered._asdict(),
        "learned_from_unix_nano": found.learned_unix_nano,
    }


def print_explanation(console: Console, found: Explanation, newest: Novelty, orders: Sequence[Order]) -> None:
    """What was seen and expected, the model, other budgets, and what operators have said."""
    for line in _why(found.novelty, newest):
        console.print(line, highlight=False, markup=False)
    if contributors := found.novelty.get("contributors"):
        console.print(_contributors(contributors, found.novelty["contributing"]))
    if found.models:
        console.print(_models(found))
    console.print(_budgets(found))
    for line in _ordered(found, orders):
        console.print(line, highlight=False, markup=False)


def _why(novelty: Novelty, newest: Novelty) -> list[str]:
    compared = COMPARED.get(novelty.get("statistic", ""), "what was known")
    began = f"began {_time(novelty['since_unix_nano'])}, alerted {_time(novelty['time_unix_nano'])}"
    ended = f", ended {_time(newest['time_unix_nano'])}" if newest["phase"] == "end" else ""
    lines = [f"{novelty['verdict']} of {where(novelty)}: {novelty['text']}", f"{began}{ended}"]
    if newest["text"] != novelty["text"]:
        lines.append(f"since then: {newest['text']}")
    score = novelty["score"]
    lines.append(f"compared with {compared}; score {score:.1f}: by chance once in {exp(min(score, 300.0)):.3g} windows")
    return lines


def _contributors(contributors: Sequence[Novelty], contributing: int) -> Table:
    title = f"Series that were strange at once ({len(contributors)} of {contributing})"
    columns = ("series", "observed", "expected", "99 of 100 windows", "score", "share")
    table = Table(*columns, title=title, title_justify="left", box=None, header_style="bold")
    for one in contributors:
        usual = f"{one['expected_low']:.4g} to {one['expected_high']:.4g}"
        values = (f"{one[name]:.4g}" for name in ("observed", "expected"))
        table.add_row(one["series"], *values, usual, f"{one['score']:.1f}", f"{one['share']:.0%}")
    return table


def _models(found: Explanation) -> Table:
    names = [name for name in FIGURES if all(name in figures for figures in found.models.values())]
    title = "Their models just before, by the replay"
    table = Table("series", *names, title=title, title_justify="left", box=None, header_style="bold")
    for series, figures in found.models.items():
        table.add_row(series, *(f"{figures[name]:.6g}" for name in names))
    return table


def _budgets(found: Explanation) -> Table:
    since = "nothing" if found.learned_unix_nano is None else _time(found.learned_unix_nano)
    title = f"At another alarm budget, by a replay that has learned from {since} on"
    columns = ("alarms a day", "alerted", "score", "what")
    table = Table(*columns, title=title, title_justify="left", box=None, header_style="bold")
    for budget, alert in found.budgets.items():
        table.add_row(f"{budget:g}", *_alerted(alert))
    return table


def _alerted(alert: Alert | None) -> tuple[str, ...]:
    return ("no", "", "") if alert is None else (_time(alert.time_unix_nano), f"{alert.score:.1f}", alert.text)


def _ordered(found: Explanation, orders: Sequence[Order]) -> list[str]:
    if not orders:
        return ["Operators have said nothing that concerns it."]
    lines = ["Operators have said"]
    lines += [f"  {_time(one.time_ms * 1_000_000)} {one.text()} (by {one.control.get('by', '?')})" for one in orders]
    return [*lines, f"Without that: {_difference(found.replayed, found.unordered)}"]


def _difference(ordered: Alert | None, unordered: Alert | None) -> str:
    if unordered is None:
        return "not alerted, either" if ordered is None else "not alerted"
    same = ordered is not None and ordered.id == unordered.id
    return "the same" if same else f"alerted {_time(unordered.time_unix_nano)}: {unordered.text}"


def _time(unix_nano: int) -> str:
    return f"{datetime.fromtimestamp(unix_nano // 10**9, UTC):%Y-%m-%d %H:%M:%S}"
