"""Novelties of machines as a whole: series that are surprised at once, none of them enough for an alert."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.anscombe import to_model_scale
from jobs.detector.model.arrays import Ints
from jobs.detector.model.machines import CALM, ONSET, Joint, Strangeness
from jobs.detector.model.protocol import Judgement, Phase, Turn
from jobs.detector.novelties import Novelty
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.explanation import CONTRIBUTORS, evidence, explained
from jobs.detector.trackers.tracker import Inputs


class Whole(NamedTuple):
    """A novelty of a machine as a whole that has not ended, and the rows that contributed most."""

    rows: list[int]
    record: Novelty


class Seen(NamedTuple):
    """A window: its series one by one, and what they say of their machines."""

    judgement: Judgement
    strangeness: Strangeness
    joint: Joint


class MachineTracker:
    """The open novelties by machine."""

    def __init__(self, inputs: Inputs, saved: Saved) -> None:
        self.inputs, self.series = inputs, inputs.series
        self.open = {int(machine): Whole(rows, record) for machine, rows, record in saved.items("whole")}
        self.model = inputs.machine_model
        self.newest: Seen | None = None  # the newest window with data

    def saved(self) -> Saved:
        whole = [(machine, *novelty) for machine, novelty in self.open.items()]
        return Saved({"whole": whole}, {})

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

    def retain_machines(self, place: Mapping[int, int]) -> None:
        """Only these machines are left: their new numbers are in `place`."""
        self.open = {place[machine]: novelty for machine, novelty in self.open.items()}

    def in_anomaly(self) -> set[int]:
        """The machines that have an anomaly as a whole now."""
        return {machine for machine, (_, record) in self.open.items() if record["verdict"] == "anomaly"}

    def judge(self, judgement: Judgement, threshold: float, window: int, busy: Iterable[int]) -> list[Novelty]:
        """The records that a window causes; series of `busy` machines have anomalies of their own."""
        time = self.inputs.settings.end_of(window)
        self.newest = seen = self._seen(judgement, window)
        emitted = self._follow_all(judgement, seen.joint, time)
        machines = np.array(sorted({*self.in_anomaly(), *busy}), np.int64)
        for at in np.flatnonzero(self.model.alerts(seen.joint, machines, threshold, window)).tolist():
            emitted += self._start(seen, at, window)
        return emitted

    def _seen(self, judgement: Judgement, window: int) -> Seen:
        values = self.series.complement(judgement.rows, judgement.observed)
        x = to_model_scale(values, self.inputs.model.is_count(judgement.rows))
        strangeness = self.model.strangeness(judgement.rows, x, window)
        if self.inputs.overrides.excuses_values():
            strange = np.flatnonzero(strangeness.beside > ONSET).tolist()
            strangeness.beside[[at for at in strange if self._is_excused(judgement, at)]] = 0.0
        machine = self.series.machine[judgement.rows]
        return Seen(judgement, strangeness, self.model.judge(machine, strangeness.beside, judgement.score))

    def _is_excused(self, judgement: Judgement, at: int) -> bool:
        row = int(judgement.rows[at])
        machine = self.inputs.machines.names[self.series.machine[row]]
        novelty = {"machine": machine, "verdict": "anomaly", **evidence(self.series, judgement, at)}
        return self.inputs.overrides.excuses(row, novelty)

    def _start(self, seen: Seen, at: int, window: int) -> list[Novelty]:
        judgement, joint = seen.judgement, seen.joint
        machine, score = int(joint.machines[at]), float(joint.score[at])
        made_of, named = self._made_of(seen, machine), self._named(seen, machine)
        record = novelties.start(
            self.inputs.machines.names[machine],
            "anomaly",
            "machine",
            self.inputs.settings.end_of(window),
            **self.inputs.place(machine),
            statistic="joint",
            window_seconds=self.inputs.settings.window_seconds,
            observed=score,
            score=score,
            expected=1.0,
            expected_low=0.0,
            expected_high=CALM,
            **explained(self.series, judgement, named, joint.weight[named].tolist()),
        )
        record["text"] = novelties.machine_text(record)
        overrides = self.inputs.overrides
        if len(made_of) < 2 or overrides.is_calm(machine, score) or overrides.suppresses(record):
            return []
        rows = judgement.rows[made_of]
        self.inputs.model.start_cooldown(rows, judgement.score[made_of], window)
        ended = self._end_as_learned(machine, record["time_unix_nano"])
        self.open[machine] = Whole(rows[:CONTRIBUTORS].tolist(), record)
        return [*ended, record]

    def _end_as_learned(self, machine: int, time: int) -> list[Novelty]:
        """A new surprise of a machine that has changed makes its state final."""
        novelty = self.open.pop(machine, None)
        if novelty is None:
            return []
        text = f"{novelty.record['machine']}: the new state is the normal one now"
        return [novelties.later(novelty.record, "end", time, text=text)]

    def _made_of(self, seen: Seen, machine: int) -> Ints:
        """Places in the judgement of the machine's series that the score is made of, the weightiest first."""
        rows, weight = seen.judgement.rows, seen.joint.weight
        at = np.flatnonzero((self.series.machine[rows] == machine) & (weight > 0))
        return at[np.lexsort((rows[at], -weight[at]))]

    def _named(self, seen: Seen, machine: int) -> list[int]:
        """These and the machine's others that are strange alone, what deviates most first.

        What the others explain of a series adds nothing to the score, but it is what people look at.
        """
        rows, weight = seen.judgement.rows, seen.joint.weight
        at = np.flatnonzero(self.series.machine[rows] == machine)
        alone = seen.strangeness.alone(at)
        strange = (weight[at] > 0) | (alone > ONSET)
        at, alone = at[strange], alone[strange]
        ordered = at[np.lexsort((rows[at], -weight[at], -alone))].tolist()
        return [one for one in ordered if not self._is_excused(seen.judgement, one)]

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
