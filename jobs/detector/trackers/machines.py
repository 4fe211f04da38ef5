"""Novelties of machines as a whole: series that are surprised at once, none of them enough for an alert."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.arrays import Floats, Ints, with_prefix
from jobs.detector.model.episodes import EPISODE_SCORE
from jobs.detector.model.machines import CALM, Joint, MachineModel
from jobs.detector.model.protocol import Judgement, Phase, Turn
from jobs.detector.novelties import Novelty
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.explanation import CONTRIBUTORS, contributors, evidence, explained
from jobs.detector.trackers.tracker import Inputs

_MODEL = "machine_"  # before the names of its columns


class Whole(NamedTuple):
    """A novelty of a machine as a whole that has not ended, and the rows that contributed most."""

    rows: list[int]
    record: Novelty


class MachineTracker:
    """The open novelties by machine, and the model that judges the series of each machine together."""

    def __init__(self, inputs: Inputs, saved: Saved) -> None:
        self.inputs, self.series = inputs, inputs.series
        self.open = {int(machine): Whole(rows, record) for machine, rows, record in saved.items("whole")}
        columns = {name.removeprefix(_MODEL): one for name, one in saved.arrays.items() if name.startswith(_MODEL)}
        self.model = MachineModel(columns)
        self.joint: Joint | None = None  # of the newest window with data

    def saved(self) -> Saved:
        whole = [(machine, *novelty) for machine, novelty in self.open.items()]
        return Saved({"whole": whole}, with_prefix(_MODEL, self.model.dump()))

    def open_novelties(self) -> Iterable[Novelty]:
        return [novelty.record for novelty in self.open.values()]

    def discard(self, ids: set[str]) -> None:
        self.open = {machine: one for machine, one in self.open.items() if one.record["id"] not in ids}

    def rows(self) -> Iterable[int]:
        return [row for novelty in self.open.values() for row in novelty.rows]

    def ids_about(self, rows: set[int]) -> set[str]:
        return {novelty.record["id"] for novelty in self.open.values() if not rows.isdisjoint(novelty.rows)}

    def renumber(self, place: Mapping[int, int]) -> None:
        self.open = {
            machine: Whole([place[row] for row in rows], record) for machine, (rows, record) in self.open.items()
        }

    def retain_machines(self, machines: Ints, place: Mapping[int, int]) -> None:
        """Only these machines are left: their new numbers are in `place`."""
        self.model.retain(machines)
        self.open = {place[machine]: novelty for machine, novelty in self.open.items()}

    def in_anomaly(self) -> set[int]:
        """The machines that have an anomaly as a whole now."""
        return {machine for machine, (_, record) in self.open.items() if record["verdict"] == "anomaly"}

    def judge(self, judgement: Judgement, threshold: float, window: int, busy: Iterable[int]) -> list[Novelty]:
        """The records that a window causes; series of `busy` machines have novelties of their own."""
        time = self.inputs.settings.end_of(window)
        owner = self.series.machine[judgement.rows]
        self.joint = self.model.step(owner, self._unexcused(judgement), threshold, window)
        emitted = self._follow_all(judgement, self.joint, time)
        machines = np.array(sorted({*self.open, *busy}), np.int64)
        alerts = self.model.alerts(self.joint, machines, threshold, window)
        for machine, now, score in zip(
            alerts.machines.tolist(), alerts.now.tolist(), alerts.score.tolist(), strict=True
        ):
            emitted += self._start(judgement, machine, {"observed": now, "score": score}, window)
        return emitted

    def _unexcused(self, judgement: Judgement) -> Floats:
        """The scores; 0 of a value that has returned to the usual, and where an operator says that it is no novelty."""
        inside = (judgement.observed >= judgement.low) & (judgement.observed <= judgement.high)
        scores = np.where(inside & (judgement.turn != Turn.STARTED), 0.0, judgement.score)
        if self.inputs.overrides.excuses_values():
            loud = np.flatnonzero(scores >= EPISODE_SCORE).tolist()
            scores[[at for at in loud if self._is_excused(judgement, at)]] = 0.0
        return scores

    def _is_excused(self, judgement: Judgement, at: int) -> bool:
        row = int(judgement.rows[at])
        machine = self.inputs.machines.names[self.series.machine[row]]
        novelty = {"machine": machine, "verdict": "anomaly", **evidence(self.series, judgement, at)}
        return self.inputs.overrides.excuses(row, novelty)

    def _start(self, judgement: Judgement, machine: int, figures: dict[str, float], window: int) -> list[Novelty]:
        strange = contributors(self.series, judgement, machine)
        strange = [at for at in strange if not self._is_excused(judgement, at)]
        record = novelties.start(
            self.inputs.machines.names[machine],
            "anomaly",
            "machine",
            self.inputs.settings.end_of(window),
            **self.inputs.place(machine),
            statistic="joint",
            window_seconds=self.inputs.settings.window_seconds,
            expected=1.0,
            expected_low=0.0,
            expected_high=CALM,
            **figures,
            **explained(self.series, judgement, strange),
        )
        record["text"] = novelties.machine_text(record)
        overrides = self.inputs.overrides
        if len(strange) < 2 or overrides.is_calm(machine, record["observed"]) or overrides.suppresses(record):
            return []
        rows = judgement.rows[strange]
        self.inputs.model.start_cooldown(rows, judgement.score[strange], window)
        self.open[machine] = Whole(rows[:CONTRIBUTORS].tolist(), record)
        return [record]

    def _follow_all(self, judgement: Judgement, joint: Joint, time: int) -> list[Novelty]:
        """Updates and ends of the novelties of machines that were seen."""
        emitted: list[Novelty] = []
        if not self.open:
            return emitted
        now = dict(zip(joint.machines.tolist(), joint.now.tolist(), strict=True))
        undone = set(judgement.rows[judgement.turn == Turn.UNDONE].tolist())
        for machine, novelty in list(self.open.items()):
            if machine in now:
                is_undone = not undone.isdisjoint(novelty.rows)
                emitted += self._follow(machine, time, is_calm=now[machine] < CALM, is_undone=is_undone)
        return emitted

    def _follow(self, machine: int, time: int, *, is_calm: bool, is_undone: bool) -> list[Novelty]:
        """A machine is calm when no window surprises and none of its contributors is still in an episode."""
        rows, record = self.open[machine]
        phases = self.inputs.model.phase(np.array(rows, np.int64))
        changed = bool(2 * (phases == Phase.CHANGED).sum() > len(rows))
        settled = is_calm and not (phases == Phase.EPISODE).any()
        if record["verdict"] == "anomaly" and changed and settled:
            text = novelties.machine_changed_text(record)
            after = novelties.later(record, "update", time, verdict="state_change", text=text)
            self.open[machine] = Whole(rows, after)
            return [after]
        if not self._is_over(record, time) and (changed if record["verdict"] == "state_change" else not settled):
            return []
        del self.open[machine]
        verdict = "anomaly" if is_undone else record["verdict"]
        return [novelties.later(record, "end", time, verdict=verdict, text=novelties.machine_calm_text(record, time))]

    def _is_over(self, record: Novelty, time: int) -> bool:
        settings = self.inputs.settings
        return bool((time - record["since_unix_nano"]) // settings.window_nano >= settings.undo_windows)
