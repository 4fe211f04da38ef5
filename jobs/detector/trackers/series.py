"""Novelties of single series: anomalies and changes of state, on each scale."""

from collections.abc import Iterable, Mapping
from math import exp
from typing import NamedTuple

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.protocol import Judgement, Turn
from jobs.detector.model.statistics import STATISTICS
from jobs.detector.novelties import Novelty
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.explanation import contributors, evidence, explained
from jobs.detector.trackers.tracker import Inputs


class Open(NamedTuple):
    """A novelty of a series that has not ended, and the length of the windows that showed it, in windows."""

    scale: int
    record: Novelty


class SeriesTracker:
    """The open novelties by row. A machine has one surprise at a time; its other series are contributors of that."""

    def __init__(self, inputs: Inputs, saved: Saved) -> None:
        self.inputs, self.series = inputs, inputs.series
        self.open = {int(row): Open(scale, record) for row, scale, record in saved.items("open")}

    def saved(self) -> Saved:
        return Saved({"open": [(row, *novelty) for row, novelty in self.open.items()]}, {})

    def open_novelties(self) -> Iterable[Novelty]:
        return [novelty.record for novelty in self.open.values()]

    def discard(self, ids: set[str]) -> None:
        self.open = {row: novelty for row, novelty in self.open.items() if novelty.record["id"] not in ids}

    def rows(self) -> Iterable[int]:
        return list(self.open)

    def ids_about(self, rows: set[int]) -> set[str]:
        return {novelty.record["id"] for row, novelty in self.open.items() if row in rows}

    def renumber(self, place: Mapping[int, int]) -> None:
        self.open = {place[row]: novelty for row, novelty in self.open.items()}

    def judge(self, judgement: Judgement, scale: int, window: int, busy: set[int]) -> list[Novelty]:
        """The records that a window causes on one scale; no novelty starts on `busy` machines."""
        time, emitted = self.inputs.settings.end_of(window), []
        for at in np.flatnonzero(judgement.turn).tolist():
            emitted += self._follow(judgement, at, scale, time)
        return emitted + self._start_all(judgement, scale, time, busy)

    def _follow(self, judgement: Judgement, at: int, scale: int, time: int) -> list[Novelty]:
        """An update or the end of a novelty; nothing of an episode without one."""
        row, turn = int(judgement.rows[at]), Turn(judgement.turn[at])
        novelty = self.open.get(row)
        if novelty is None or novelty.scale != scale:
            return []
        if turn == Turn.STARTED:
            return self._end_as_learned(row, time)
        if turn == Turn.CHANGED:
            return self._change(row, float(judgement.observed[at]), time)
        del self.open[row]
        now = {"observed": float(judgement.observed[at]), "score": float(judgement.score[at])}
        now["probability"] = exp(-now["score"])
        if turn == Turn.LEARNED:
            text = novelties.learned_text(novelty.record)
            return [novelties.later(novelty.record, "end", time, **now, text=text)]
        text = novelties.returned_text(novelty.record, time, undone=turn == Turn.UNDONE)
        return [novelties.later(novelty.record, "end", time, **now, verdict="anomaly", text=text)]

    def _change(self, row: int, observed: float, time: int) -> list[Novelty]:
        """An anomaly that stays is a change of state."""
        scale, record = self.open[row]
        text = novelties.state_change_text(record, observed)
        changed = novelties.later(record, "update", time, verdict="state_change", observed=observed, text=text)
        self.open[row] = Open(scale, changed)
        return [changed]

    def _end_as_learned(self, row: int, time: int) -> list[Novelty]:
        """A new surprise in a changed state makes that state final."""
        novelty = self.open.pop(row, None)
        if novelty is None:
            return []
        return [novelties.later(novelty.record, "end", time, text=novelties.learned_text(novelty.record))]

    def _start_all(self, judgement: Judgement, scale: int, time: int, busy: set[int]) -> list[Novelty]:
        """One novelty a machine, led by its strongest series; none where the machine has one of the same surprise."""
        by_machine = self._alerts_by_machine(judgement)
        busy = busy | self.machines_in_episode()
        emitted: list[Novelty] = []
        for machine, positions in sorted(by_machine.items()):
            for at in positions:
                emitted += self._end_as_learned(int(judgement.rows[at]), time)
            if machine not in busy:
                emitted += self._start_strongest(judgement, positions, scale, time)
        return emitted

    def _alerts_by_machine(self, judgement: Judgement) -> dict[int, list[int]]:
        """Places in the judgement, the strongest first, of alerts of series whose novelty doesn't say that yet."""
        alerts = np.flatnonzero(judgement.alert)
        strongest_first = alerts[np.lexsort((judgement.rows[alerts], -judgement.score[alerts]))]
        by_machine: dict[int, list[int]] = {}
        for at in strongest_first.tolist():
            known = self.open.get(int(judgement.rows[at]))
            if known is None or not (known.record["verdict"] == "anomaly" or judgement.settled[at]):
                by_machine.setdefault(int(self.series.machine[judgement.rows[at]]), []).append(at)
        return by_machine

    def machines_in_episode(self) -> set[int]:
        """Those with a surprise of single windows now; one of a larger scale lasts too long to silence all others."""
        rows = [row for row, (scale, record) in self.open.items() if scale == 1 and record["verdict"] == "anomaly"]
        at = np.array(rows, np.int64)
        return set(self.series.machine[at[self.inputs.model.phase(at) > 0]].tolist())

    def _start_strongest(self, judgement: Judgement, positions: list[int], scale: int, time: int) -> list[Novelty]:
        """The first of a machine's surprises that no operator has called normal, or suppressed."""
        for at in positions:
            record, row = _surprise(self.inputs, judgement, at, scale, time), int(judgement.rows[at])
            if not self.inputs.overrides.excuses(row, record):
                self.open[row] = Open(scale, record)
                return [record]
        return []


def _surprise(inputs: Inputs, judgement: Judgement, at: int, scale: int, time: int) -> Novelty:
    """The start of a novelty of the series at this place in the judgement."""
    row, series = int(judgement.rows[at]), inputs.series
    definition, machine = series.describe(row), int(series.machine[row])
    name = inputs.machines.names[machine]
    settings, has_stayed = inputs.settings, bool(judgement.settled[at])
    since = time - (settings.settle_windows - 1) * settings.window_nano if has_stayed else time
    record = novelties.start(
        name,
        "state_change" if has_stayed else "anomaly",
        definition.kind,
        time,
        since_unix_nano=since,
        **inputs.place(machine),
        name=definition.name,
        statistic=STATISTICS[judgement.statistic[at]].label,
        window_seconds=scale * settings.window_seconds,
        **evidence(series, judgement, at),
        **explained(series, judgement, contributors(series, judgement, machine)),
        example=inputs.examples.of(name, definition.kind, definition.series),
    )
    record["text"] = (
        novelties.state_change_text(record, record["observed"])
        if has_stayed
        else novelties.anomaly_text(record, scale > 1)
    )
    return record
