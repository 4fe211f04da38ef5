"""The statistics of one shard: a fold over one partition of `events`.

Points wait in columns until a watermark says that their pane, the smallest tumbling window, is complete. Then the panes
are taken one by one in event time, whatever the batches: that makes the result independent of how the log is cut. What
a pane says is kept until the larger windows over it are complete, and a little is remembered of each series.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from infra.contract.sharding import Mine
from infra.contract.versions import version_header
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input, Output
from jobs.statistics.catalogue import REFUSED, Form
from jobs.statistics.counters import FALLS, growth
from jobs.statistics.emit import WindowResult
from jobs.statistics.histograms import Spread, merged, since
from jobs.statistics.intake import take
from jobs.statistics.limits import Limits, dead_letter
from jobs.statistics.panes import Pane
from jobs.statistics.parts import in_parts
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Booleans, Floats, Ints
from jobs.statistics.rows import Rows
from jobs.statistics.settings import Windows
from jobs.statistics.state import State
from jobs.statistics.windows.kind import Closed

EARLY = "statistics.early"
# Silent series are evicted when so many have gathered.
IDLE_SERIES = 1024

DEFAULT_LIMITS = Limits()


class Shard:
    """The state of one partition of `events`, see `jobs.runtime.shard_state`: gives the records of `statistics`."""

    def __init__(self, windows: Windows, parts: Parts | None = None, limits: Limits = DEFAULT_LIMITS) -> None:
        """Raises ChangedWindowsError and ChangedLayoutError, see `State`."""
        self.limits = limits
        self.state = State(windows, parts, limits)

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `events`; returns those of `statistics`, late data and dead letters."""
        begin, pane = self.state.watermark, self.state.windows.pane
        messages, outputs, found = batch.messages(), [], []
        while True:
            before = self.state.watermark
            outputs += take(self.state, messages)
            if self.state.watermark // pane == before // pane:
                break
            found += [one for result in close(self.state, before) for one in self._outputs(result, batch)]
            found += self._dead_letters(batch)
        outputs += sorted(found, key=_place_in_log)
        # Only what a pane's end makes known is emitted. A watermark within a pane would give the jobs downstream a
        # batch, for nothing.
        if self.state.watermark // pane > begin // pane:
            outputs.append(Output.of_watermark(self.state.watermark))
        return outputs

    def _outputs(self, result: WindowResult, batch: Input) -> Iterator[Output]:
        """A window's record; several, if it is too large for one."""
        trace = f"{batch.topic}/{batch.shard}/{result.fact.first_offset}-{result.fact.last_offset}".encode()
        headers = (("kappa.source", trace), version_header("statistics"))
        topic = EARLY if result.early else None
        # A longer window ends long after a machine may have fallen silent: only the pane that has just ended shows it.
        is_fresh = result.fact.time >= result.time - self.state.windows.pane
        site = result.fact.inventory.get("site") if is_fresh else None
        for value in in_parts(result.json(), self.limits.record_bytes):
            yield Output(result.machine, value, result.time, headers, topic, origin=site)

    def _dead_letters(self, batch: Input) -> Iterator[Output]:
        """What was left out in the panes that have ended."""
        pane = self.state.windows.pane
        for place, left_out in self.state.refused.take(self.state.watermark, pane):
            yield dead_letter(place, left_out, self.limits, pane, (batch.topic, batch.shard))

    def dump(self) -> Parts:
        """The state as parts."""
        return self.state.packed()

    def retain(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`."""
        self.state.retain_machines(mine)


def _place_in_log(output: Output) -> tuple[int, str, bytes]:
    """As the sink orders them. A record's time is the end of the pane that made it known: so batches come in order."""
    return output.time_unix_nano, output.key or "", output.value


def close(state: State, before: int) -> Iterator[WindowResult]:
    """The results of the panes that ended after watermark `before` and not after the present one, in event time."""
    size = state.windows.pane
    limit = state.watermark - state.watermark % size
    end = before - before % size + size
    while (end := _next_end(state, end)) <= limit:
        surprises = _surprises(state, end - size)
        points = state.points.pop(end - size, Points.empty()).joined(surprises)
        yield from _close_pane(state, end, points.ordered())
        end += size
    _evict(state)


def _next_end(state: State, end: int) -> int:
    """`end`, or where nothing is open the end of the next pane that holds anything."""
    size = state.windows.pane
    if state.panes or any(one.open_until > end - size for one in state.open):
        return end
    return max(end, min(state.points, default=state.watermark) + size)


def _surprises(state: State, start: int) -> Points:
    """Lines of the pane that begins there in which a parameter has a new value: each is of a series of its own, too."""
    lines = state.lines.close(start)
    if lines is None:
        return Points.empty()
    found = state.parameters.observe(lines, state.catalogue)
    of_value = state.catalogue.parameter_series
    numbers = [of_value(int(lines.series[one.line]), one.parameter, one.value) for one in found]
    state.catalogue.grow()
    kept = [at for at, number in enumerate(numbers) if number != REFUSED]
    again = lines.again([found[at].line for at in kept], [numbers[at] for at in kept])
    state.examples.take(again, state.windows.pane)
    return Points(again.series, again.times, again.severities.astype(np.float64))


def _close_pane(state: State, end: int, points: Points) -> Iterator[WindowResult]:
    start = end - state.windows.pane
    facts = state.facts.pop(start, {})
    state.latest |= facts
    runs = _runs(points)
    state.evict(state.catalogue.reset_silent(runs.series, runs.first_time, state.windows.state_ttl))
    reading = _read(state, points, runs)
    is_log = state.catalogue.form[points.series] == Form.LOG
    kept = reading.valid & ~is_log
    rows = Rows.of_points(points.series, reading.value, reading.amount, reading.valid, kept).combined()
    state.panes.close(Pane(start, rows, facts, _observe(state, end)), end)
    state.examples.close(start)
    state.parameters.close_pane()
    lines, values = points.take(is_log), replace(points, value=reading.value).take(kept)
    closed = Closed(end, start, lines, values, state.panes, state.catalogue, state.latest, state.examples.newest)
    for window in state.open:
        yield from window.emit(closed)
    if len(points):
        state.catalogue.remember(
            runs.series,
            count=rows.points,
            first=runs.first_time,
            last=runs.last_time,
            value=points.value[runs.last],
            fell=np.add.reduceat(reading.fell.astype(np.int64), runs.start),
        )
    state.panes.evict(end)


class _Runs(NamedTuple):
    """Where the points of each series begin and end."""

    series: Ints
    start: Ints
    last: Ints
    first_time: Ints
    last_time: Ints


def _runs(points: Points) -> _Runs:
    start = np.flatnonzero(np.diff(points.series, prepend=-1))
    last = np.append(start[1:], len(points))[: len(start)] - 1
    return _Runs(points.series[start], start, last, points.time[start], points.time[last])


class _Reading(NamedTuple):
    """Of each point: its value, what of it adds up, whether it has a value, whether it fell."""

    value: Floats
    amount: Floats
    valid: Booleans
    fell: Booleans


def _read(state: State, points: Points, runs: _Runs) -> _Reading:
    """Gauges as they are, counters as rates; histograms have no single value."""
    form, memory = state.catalogue.form[points.series], state.catalogue.memory
    is_counter = form == Form.COUNTER
    before_time, before = np.roll(points.time, 1), np.roll(points.value, 1)
    before_time[runs.start], before[runs.start] = memory["time"][runs.series], memory["value"][runs.series]
    grown = growth(points.time, points.value, before_time, before)
    is_rate = is_counter & (memory["falls"][points.series] < FALLS)
    return _Reading(
        np.where(is_rate, grown.rate, points.value),
        np.where(is_rate, grown.amount, points.value),
        np.where(is_rate, grown.known, form != Form.HISTOGRAM),
        is_counter & grown.fell,
    )


def _observe(state: State, end: int) -> dict[int, Spread]:
    """What histograms observed in the pane that ends."""
    due = sorted((one for one in state.waiting if one[1] < end), key=lambda one: (one[0], one[1], one[2].observations))
    state.waiting = [one for one in state.waiting if one[1] >= end]
    found: dict[int, list[Spread]] = defaultdict(list)
    for number, _, now in due:
        if state.catalogue.series[number].delta:
            found[number].append(now)
        elif number in state.totals:
            found[number].append(since(state.totals[number], now))
        state.totals[number] = now
    return {number: merged(spreads) for number, spreads in found.items()}


def _evict(state: State) -> None:
    """Drop the series whose state has outlived its time, once they are many or in the way of others.

    `reset_silent` has reset each already. It depends on the log alone when that is: what there is room for does, too.
    """
    silent = state.catalogue.memory["time"] < state.watermark - state.windows.state_ttl
    if np.count_nonzero(silent) <= IDLE_SERIES + len(silent) // 2 and not _is_crowded(state, silent):
        return
    silent[state.held()] = False
    state.evict(np.flatnonzero(silent))
    state.retain(np.flatnonzero(~silent))


def _is_crowded(state: State, silent: Booleans) -> bool:
    """Whether a limit is reached because of what is silent: by half of a machine's series, or of the machines."""
    catalogue = state.catalogue
    if any(silent[catalogue.of_machine(*place)].mean() >= 0.5 for place in sorted(catalogue.full)):
        return True
    if len(catalogue.machines) < catalogue.limits.machines:
        return False
    return 2 * len(np.unique(catalogue.machine_of[~silent])) <= len(catalogue.machines)
