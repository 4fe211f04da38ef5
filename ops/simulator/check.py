"""Compares the records of the chain with the truth: nothing lost, nothing duplicated, every statistic right."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from infra.contract.columnar import to_rows
from infra.errors import UserError
from ops.simulator.faults import SECOND
from ops.simulator.truth import ALL_LINES, WINDOW, line_identity, value_identity, window_start

EXAMPLES = 20
_COMPARED = ("count", "sum", "min", "max")
TOLERANCE = 1e-9  # relative; the order in which a window's doubles are summed may differ


class Cell(NamedTuple):
    """A series of a machine in a window: what is compared."""

    machine: str
    kind: str
    start_unix_nano: int
    series: str


Values = dict[str, Any]
Windows = dict[Cell, Values]


@dataclass
class Report:
    """The result. `lost` and `duplicated` count events, `wrong` counts cells with the right count but other values."""

    cells: int = 0
    events: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether something was compared and nothing differs."""
        return self.cells > 0 and not (self.lost or self.duplicated or self.wrong)

    def as_dict(self) -> dict[str, Any]:
        """The result as JSON."""
        return {"passed": self.passed, **asdict(self)}

    def _note(self, problem: str, cell: Cell, expected: Values, found: Values) -> None:
        if len(self.examples) < EXAMPLES:
            self.examples.append({"problem": problem, **cell._asdict(), "expected": expected, "found": found})


def compare(truth: Path, statistics: Iterable[Mapping[str, Any]], until_unix_nano: int | None = None) -> Report:
    """Compare the truth with records of the topic `statistics`, watermarks included.

    Only windows that end at `until_unix_nano` or before are compared: give the last watermark of the slowest partition;
    the default is the greatest watermark. Machines that were not simulated and windows of other sizes are ignored.

    Raises:
        UserError: `truth` holds no truth.
    """
    records = list(statistics)
    until = _last_watermark(records) if until_unix_nano is None else until_unix_nano
    machines = _machines(truth)
    found: dict[Cell, list[Values]] = defaultdict(list)
    for record in records:
        if record.get("machine") in machines and "window" in record and _is_compared(record["window"]):
            for cell, values in _cells(record):
                found[cell].append(values)
    return _compare(_load(truth), _joined(found), until)


def compare_events(
    truth: Path, events: Iterable[Mapping[str, Any]], until_unix_nano: int | None = None, since_unix_nano: int = 0
) -> Report:
    """Compare the truth with records of the topic `events`, down to the time and content of each event.

    Only windows that start at `since_unix_nano` or later and end at `until_unix_nano` or before are compared; by
    default all.

    Raises:
        UserError: `truth` holds no truth.
    """
    machines = _machines(truth)
    found = recount(r for r in events if r.get("machine") in machines and r["kind"] != "control")
    return _compare(_load(truth), found, 2**63 if until_unix_nano is None else until_unix_nano, since_unix_nano)


def recount(events: Iterable[Mapping[str, Any]]) -> Windows:
    """The values of the truth as computed from records of `events`; log lines by machine, not by template."""
    by_cell: dict[Cell, list[tuple[int, Any]]] = defaultdict(list)
    for record in events:
        machine, kind = record["machine"], record["kind"]
        for event in to_rows(record["events"]):
            time, is_log = event["time_unix_nano"], kind == "log"
            cell = Cell(machine, kind, window_start(time), ALL_LINES if is_log else event["series"])
            by_cell[cell].append((time, event["body"] if is_log else float(event["value"])))
    return {cell: _values(cell, members) for cell, members in by_cell.items()}


def _values(cell: Cell, members: list[tuple[int, Any]]) -> Values:
    times, contents = zip(*members, strict=True)
    if cell.kind == "log":
        identities = line_identity(np.array(times), contents)
        return {"count": len(times), "identity": int(identities.sum())}
    identities = value_identity(np.array(times), np.array(contents))
    values = {"sum": math.fsum(contents), "min": min(contents), "max": max(contents)}
    return {"count": len(times), **values, "identity": int(identities.sum())}


def _cells(record: Mapping[str, Any]) -> Iterator[tuple[Cell, Values]]:
    """The values of each metric in a record, and the number of all its log lines: the truth has other templates."""
    machine, start = record["machine"], record["window"]["start_unix_nano"]
    statistics = to_rows(record["statistics"])
    lines = [row["count"] for row in statistics if row["kind"] == "log" and not _is_of_a_parameter(row)]
    if lines:
        yield Cell(machine, "log", start, ALL_LINES), {"count": sum(lines)}
    for statistic in statistics:
        if statistic["kind"] == "metric":
            yield Cell(machine, "metric", start, statistic["series"]), _comparable(statistic)


def _is_of_a_parameter(statistic: Mapping[str, Any]) -> bool:
    """Whether these lines, of a template's unusual value, are counted in the template's own series, too."""
    return "parameter" in (statistic.get("attributes") or {})


def _comparable(statistic: Mapping[str, Any]) -> Values:
    """The values that the truth has too; of a counter only count and growth, as its other values are of rates."""
    names = (
        {"count": "count", "sum": "growth"} if statistic.get("rate") else dict(zip(_COMPARED, _COMPARED, strict=True))
    )
    return {name: statistic[field] for field, name in names.items() if statistic.get(field) is not None}


def _joined(found: Mapping[Cell, list[Values]]) -> Windows:
    """The values by cell; those of a window that was emitted twice have the sum of both counts, so that it shows."""
    return {
        cell: emitted[0] if len(emitted) == 1 else {"count": sum(values["count"] for values in emitted)}
        for cell, emitted in found.items()
    }


def _compare(truth: Windows, found: Windows, until: int, since: int = 0) -> Report:
    report = Report()
    for cell in sorted(truth.keys() | found.keys()):
        is_asked = since <= cell.start_unix_nano <= until - WINDOW
        if is_asked and (cell.kind == "metric" or cell.series == ALL_LINES):
            _compare_cell(report, cell, truth.get(cell, {"count": 0}), found.get(cell, {"count": 0}))
    return report


def _compare_cell(report: Report, cell: Cell, expected: Values, found: Values) -> None:
    report.cells += 1
    report.events += expected["count"]
    more = found["count"] - expected["count"]
    if more < 0:
        report.lost -= more
        report._note("lost", cell, expected, found)
    elif more > 0:
        report.duplicated += more
        report._note("duplicated", cell, expected, found)
    elif any(not _agree(name, expected[name], found[name]) for name in expected.keys() & found.keys()):
        report.wrong += 1
        report._note("wrong", cell, expected, found)


def _agree(name: str, expected: float, found: float) -> bool:
    if name == "identity":
        return expected == found
    return math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _is_compared(window: Mapping[str, Any]) -> bool:
    return bool(window["kind"] == "tumbling" and round(window["size_seconds"] * SECOND) == WINDOW)


def _last_watermark(records: Iterable[Mapping[str, Any]]) -> int:
    return max((record["watermark_unix_nano"] for record in records if record.get("watermark_unix_nano")), default=0)


def _machines(truth: Path) -> set[str]:
    return {machine["machine"] for machine in orjson.loads(_read(truth / "cloud.json"))}


def _load(truth: Path) -> Windows:
    windows: Windows = {}
    whole, _, _ = _read(truth / "windows.jsonl").rpartition(b"\n")  # the last line may be half written
    for text in whole.splitlines():
        line = orjson.loads(text)
        for series, values in line["series"].items():
            cell = Cell(line["machine"], line["kind"], line["start_unix_nano"], series)
            windows[cell] = _sum(windows[cell], values) if cell in windows else values
    return _with_growth(windows)


def _with_growth(windows: Windows) -> Windows:
    """Add the growth of each metric since its previous window, unless it fell: statistics have it of counters."""
    highest: dict[tuple[str, str], float] = {}
    for cell in sorted(windows, key=lambda cell: cell.start_unix_nano):
        values = windows[cell]
        if cell.kind == "metric":
            before = highest.get((cell.machine, cell.series), math.inf)
            if values["min"] >= before:
                windows[cell] = values | {"growth": values["max"] - before}
            highest[cell.machine, cell.series] = values["max"]
    return windows


def _sum(one: Values, other: Values) -> Values:
    merged = {"count": one["count"] + other["count"], "identity": (one["identity"] + other["identity"]) % 2**64}
    if "sum" not in one:
        return merged
    extremes = {"min": min(one["min"], other["min"]), "max": max(one["max"], other["max"])}
    return {**merged, "sum": one["sum"] + other["sum"], **extremes}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"truth {str(path.parent)!r}: {path.name} can't be read; give the --truth of a run") from error
