"""Records of the topic `statistics`: which windows a pane completes, and what they say."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import orjson

from jobs.statistics.panes import Fact, Pane
from jobs.statistics.points import Points
from jobs.statistics.sessions import Sessions
from jobs.statistics.settings import Count, Session, Sliding, Tumbling
from jobs.statistics.state import State
from jobs.statistics.window_statistics import Columns, log_columns, table, tell
from jobs.statistics.windows import NANO, Rows

Record = dict[str, Any]


class Told(NamedTuple):
    """A record, its machine's facts, and the end of the pane that made it known: a provisional one covers so far."""

    time: int
    id: str
    machine: str
    fact: Fact
    window: Record
    statistics: Columns
    provisional: bool = False

    def json(self) -> bytes:
        """Of the schema `statistics`."""
        whole: Record = {
            "id": self.id,
            "machine": self.machine,
            "inventory": self.fact.inventory,
            "window": self.window,
            "statistics": self.statistics,
        }
        if self.provisional:
            whole |= {"provisional": True, "until_unix_nano": self.time}
        return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY)


def tell_times(state: State, pane: Pane, end: int) -> Iterator[Told]:
    """Tumbling and sliding windows that `pane`, which ends at `end`, completes; then those that are still open."""
    for window in state.windows.tumbling:
        if end % window.size == 0:
            whole = pane if window.size == state.windows.pane else _whole(state, window, end - window.size)
            if whole and len(whole.rows):
                state.store.add(window.size, whole)
                yield from _tell(state, window, whole, end - window.size, end)
    for sliding in state.windows.sliding:
        whole = None if end % sliding.slide else _whole(state, sliding, end - sliding.size)
        if whole:
            yield from _tell(state, sliding, whole, end - sliding.size, end)
    for window in state.windows.tumbling:
        covered = end % window.size
        if window.early and covered and covered % window.early == 0:
            part = _whole(state, window, end - covered)
            if part:
                yield from _tell(state, window, part, end - covered, end)


def _whole(state: State, window: Tumbling | Sliding, start: int) -> Pane | None:
    panes = state.store.since(state.windows.panes_of(window), start)
    return Pane.of(panes) if panes else None


def _tell(state: State, window: Tumbling | Sliding, pane: Pane, start: int, time: int) -> Iterator[Told]:
    end, seconds = start + window.size, window.size / NANO
    span: Record = {"kind": window.kind, "size_seconds": seconds}
    name = f"{seconds:g}s"
    if isinstance(window, Sliding):
        span["slide_seconds"] = window.slide / NANO
        name += f"-{window.slide / NANO:g}s"
    span |= _bounds(start, end)
    for machine, found in tell(state.catalogue, pane, time - start).by_machine():
        yield Told(time, f"{machine}/{name}/{start}", machine, pane.facts[machine], span, found, time < end)


def _bounds(start: int, end: int) -> Record:
    return {"start_unix_nano": start, "end_unix_nano": end}


def tell_sessions(state: State, lines: Points, end: int) -> Iterator[Told]:
    """Sessions that have ended by `end`, with the pane's lines; then open ones, where they are due."""
    for number, window in enumerate(state.windows.sessions):
        new = Sessions.of_events(lines.series, lines.time, lines.value.astype(np.int64))
        rows = state.sessions[number].joined(new, window.gap)
        is_open = rows.last + window.gap > end
        is_open[:-1] &= rows.series[:-1] != rows.series[1:]  # the next one of its series has begun
        state.sessions[number] = rows.take(is_open)
        enough = rows.count >= window.least
        yield from _tell_sessions(state, window, rows.take(enough & ~is_open), end)
        if window.early and end % window.early == 0:
            followed = enough & is_open & (rows.last >= end - window.early)
            yield from _tell_sessions(state, window, rows.take(followed), end, provisional=True)


def _tell_sessions(
    state: State, window: Session, sessions: Sessions, time: int, provisional: bool = False
) -> Iterator[Told]:
    rows = sessions.take(np.argsort(state.catalogue.rank[sessions.series], kind="stable"))
    columns = (rows.series, rows.start, rows.last, rows.count, rows.severity)
    for number, start, last, count, severity in zip(*(column.tolist() for column in columns), strict=True):
        machine, end = state.catalogue.machine(number), last + window.gap
        span = {"kind": "session", "size_seconds": (end - start) / NANO, "gap_seconds": window.gap / NANO}
        identity = f"{machine}/session-{window.gap / NANO:g}s/{start}/{_digest(state, number)}"
        found = log_columns(state.catalogue, number, count, severity)
        span |= _bounds(start, end)
        yield Told(time, identity, machine, state.latest[machine], span, found, provisional)


def tell_counts(state: State, points: Points, time: int) -> Iterator[Told]:
    """Count windows that the pane's values complete; the others wait."""
    for number, window in enumerate(state.windows.counts):
        taken = state.catalogue.matching(window)[points.series]
        waiting = state.counted[number].joined(points.take(taken)).by_series()
        full, state.counted[number] = waiting.in_groups(window.values)
        if len(full):
            yield from _tell_count(state, window, full, time)


def _tell_count(state: State, window: Count, full: Points, time: int) -> Iterator[Told]:
    n, catalogue = window.values, state.catalogue
    every = np.ones(len(full), bool)
    groups = Rows.of_points(np.arange(len(full)) // n, full.value, full.value, every, every).combined()
    rows = replace(groups, series=full.series[::n])
    order = np.argsort(catalogue.rank[rows.series], kind="stable")
    found = table(catalogue, rows, order, {}, np.full(len(rows), np.nan)).parts(np.arange(len(rows)))
    columns = (column[order].tolist() for column in (rows.series, full.time[::n], full.time[n - 1 :: n]))
    for number, start, last, statistic in zip(*columns, found, strict=True):
        machine, end = catalogue.machine(number), last + 1
        span = {"kind": "count", "size_seconds": (end - start) / NANO, "values": n} | _bounds(start, end)
        identity = f"{machine}/{n}-values/{start}-{end}/{_digest(state, number)}"
        yield Told(time, identity, machine, state.latest[machine], span, statistic)


def _digest(state: State, number: int) -> str:
    series = state.catalogue.series[number]
    return blake2b(f"{series.series}\x1f{series.unit or ''}".encode(), digest_size=8).hexdigest()
