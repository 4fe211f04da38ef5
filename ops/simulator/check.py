"""Compares what the chain says with the truth: nothing lost, nothing doubled, every figure right."""

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
_FIGURES = ("count", "sum", "min", "max")
TOLERANCE = 1e-9  # relative; the order in which a window's doubles are summed may differ


class Cell(NamedTuple):
    """A series of a machine in a window."""

    machine: str
    kind: str
    start_unix_nano: int
    series: str


Figures = dict[str, Any]
Windows = dict[Cell, Figures]


@dataclass
class Report:
    """What differs. `lost` and `duplicated` count events, `wrong` the cells of the right count and other figures."""

    cells: int = 0
    events: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    examples: list[dict[str, Any]] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether something was compared and all of it agrees."""
        return self.cells > 0 and not (self.lost or self.duplicated or self.wrong)

    def facts(self) -> dict[str, Any]:
        """As JSON."""
        return {"passed": self.passed, **asdict(self)}

    def _note(self, problem: str, cell: Cell, expected: Figures, found: Figures) -> None:
        if len(self.examples) < EXAMPLES:
            self.examples.append({"problem": problem, **cell._asdict(), "expected": expected, "found": found})


def compare(truth: Path, statistics: Iterable[Mapping[str, Any]], until_unix_nano: int | None = None) -> Report:
    """The truth against records of the `statistics` topic, watermarks among them (`infra.contract.schemas.STATISTICS`).

    Looked at are the windows that end at `until_unix_nano` or before: the last watermark of the slowest partition,
    or without it the greatest watermark of all. Machines that were not simulated and windows of other sizes are passed
    over.

    Raises:
        UserError: `truth` holds no truth.
    """
    records = list(statistics)
    until = _last_watermark(records) if until_unix_nano is None else until_unix_nano
    machines = _machines(truth)
    found: dict[Cell, list[Figures]] = defaultdict(list)
    for record in records:
        if record.get("machine") in machines and "window" in record and _is_ours(record["window"]):
            for cell, figures in _cells(record):
                found[cell].append(figures)
    return _compare(_load(truth), _joined(found), until)


def compare_events(
    truth: Path, events: Iterable[Mapping[str, Any]], until_unix_nano: int | None = None, since_unix_nano: int = 0
) -> Report:
    """The truth against records of the `events` topic, down to each event's time and content.

    Looked at are the windows that start at `since_unix_nano` or later and end at `until_unix_nano` or before, without
    them all.

    Raises:
        UserError: `truth` holds no truth.
    """
    machines = _machines(truth)
    found = recount(r for r in events if r.get("machine") in machines and r["kind"] != "control")
    return _compare(_load(truth), found, 2**63 if until_unix_nano is None else until_unix_nano, since_unix_nano)


def recount(events: Iterable[Mapping[str, Any]]) -> Windows:
    """The truth's figures, counted anew from records of `events`; log lines by machine only."""
    gathered: dict[Cell, list[tuple[int, Any]]] = defaultdict(list)
    for record in events:
        machine, kind = record["machine"], record["kind"]
        for event in to_rows(record["events"]):
            time, is_log = event["time_unix_nano"], kind == "log"
            cell = Cell(machine, kind, window_start(time), ALL_LINES if is_log else event["series"])
            gathered[cell].append((time, event["body"] if is_log else float(event["value"])))
    return {cell: _figures(cell, members) for cell, members in gathered.items()}


def _figures(cell: Cell, members: list[tuple[int, Any]]) -> Figures:
    times, contents = zip(*members, strict=True)
    if cell.kind == "log":
        identities = line_identity(np.array(times), contents)
        return {"count": len(times), "identity": int(identities.sum())}
    identities = value_identity(np.array(times), np.array(contents))
    figures = {"sum": math.fsum(contents), "min": min(contents), "max": max(contents)}
    return {"count": len(times), **figures, "identity": int(identities.sum())}


def _cells(record: Mapping[str, Any]) -> Iterator[tuple[Cell, Figures]]:
    """One window's figures of each metric, and of all log lines together: templates are the chain's own affair."""
    machine, start = record["machine"], record["window"]["start_unix_nano"]
    statistics = to_rows(record["statistics"])
    lines = [statistic["count"] for statistic in statistics if statistic["kind"] == "log"]
    if lines:
        yield Cell(machine, "log", start, ALL_LINES), {"count": sum(lines)}
    for statistic in statistics:
        if statistic["kind"] == "metric":
            yield Cell(machine, "metric", start, statistic["series"]), _told(statistic)


def _told(statistic: Mapping[str, Any]) -> Figures:
    """What the truth can be compared with; of a counter the growth: its other figures are of rates."""
    names = {"count": "count", "sum": "growth"} if statistic.get("rate") else dict(zip(_FIGURES, _FIGURES, strict=True))
    return {name: statistic[told] for told, name in names.items() if statistic.get(told) is not None}


def _joined(found: Mapping[Cell, list[Figures]]) -> Windows:
    """A window that was told twice counts twice."""
    return {
        cell: told[0] if len(told) == 1 else {"count": sum(figures["count"] for figures in told)}
        for cell, told in found.items()
    }


def _compare(truth: Windows, found: Windows, until: int, since: int = 0) -> Report:
    report = Report()
    for cell in sorted(truth.keys() | found.keys()):
        is_asked = since <= cell.start_unix_nano <= until - WINDOW
        if is_asked and (cell.kind == "metric" or cell.series == ALL_LINES):
            _compare_cell(report, cell, truth.get(cell, {"count": 0}), found.get(cell, {"count": 0}))
    return report


def _compare_cell(report: Report, cell: Cell, expected: Figures, found: Figures) -> None:
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


def _is_ours(window: Mapping[str, Any]) -> bool:
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
        for series, figures in line["series"].items():
            cell = Cell(line["machine"], line["kind"], line["start_unix_nano"], series)
            windows[cell] = _sum(windows[cell], figures) if cell in windows else figures
    return _with_growth(windows)


def _with_growth(windows: Windows) -> Windows:
    """Each metric's growth since its window before, if it has one and didn't fall: a counter's is told."""
    highest: dict[tuple[str, str], float] = {}
    for cell in sorted(windows, key=lambda cell: cell.start_unix_nano):
        figures = windows[cell]
        if cell.kind == "metric":
            before = highest.get((cell.machine, cell.series), math.inf)
            if figures["min"] >= before:
                windows[cell] = figures | {"growth": figures["max"] - before}
            highest[cell.machine, cell.series] = figures["max"]
    return windows


def _sum(one: Figures, other: Figures) -> Figures:
    merged = {"count": one["count"] + other["count"], "identity": (one["identity"] + other["identity"]) % 2**64}
    if "sum" not in one:
        return merged
    spread = {"min": min(one["min"], other["min"]), "max": max(one["max"], other["max"])}
    return {**merged, "sum": one["sum"] + other["sum"], **spread}


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(f"truth {str(path.parent)!r}: {path.name} can't be read; give the --truth of a run") from error
