"""Novelties of machines that send nothing any more: silent at first, then gone. They need no event, only watermarks."""

from collections.abc import Iterable, Iterator, Mapping
from math import log

import numpy as np

from jobs.detector import novelties
from jobs.detector.model.arrays import Ints
from jobs.detector.novelties import Novelty
from jobs.detector.population.machines import NEVER
from jobs.detector.saved_state import Saved
from jobs.detector.trackers.tracker import Inputs

SILENCE_SCORE = 4.0  # a machine is missed when so many silent windows had a probability below e^-4
MOST_GAPS = 100  # windows: more say nothing more


class SilenceTracker:
    """The open novelties by machine."""

    def __init__(self, inputs: Inputs, saved: Saved) -> None:
        self.inputs, self.settings, self.machines = inputs, inputs.settings, inputs.machines
        self.silent: dict[int, Novelty] = {int(machine): record for machine, record in saved.items("silent")}

    def saved(self) -> Saved:
        return Saved({"silent": list(self.silent.items())}, {})

    def open_novelties(self) -> Iterable[Novelty]:
        return list(self.silent.values())

    def discard(self, ids: set[str]) -> None:
        self.silent = {machine: record for machine, record in self.silent.items() if record["id"] not in ids}

    def is_silent(self, machine: int) -> bool:
        """Whether a machine has an open novelty."""
        return machine in self.silent

    def retain_machines(self, place: Mapping[int, int]) -> None:
        """Machines have new numbers."""
        self.silent = {place[machine]: record for machine, record in self.silent.items()}

    def end(self, window: int, present: Ints) -> list[Novelty]:
        """A silent machine that is seen again ends its silence."""
        time, back = self.settings.end_of(window), [one for one in present.tolist() if one in self.silent]
        self.inputs.overrides.end_excuses(present.tolist())
        return [
            novelties.later(self.silent.pop(machine), "end", time, text=f"{self.machines.names[machine]} speaks again")
            for machine in back
        ]

    def judge(self, window: int) -> list[Novelty]:
        """Machines that were regular and have now been silent for too long."""
        gap = window - self.machines.last
        was_regular = self.machines.present >= self.settings.warmup_windows
        emitted = []
        may_be = (gap >= self.settings.silence_windows) & was_regular & (self.machines.dropped == 0)
        may_be[list(self.silent)] = False
        for machine in np.flatnonzero(may_be).tolist():
            score = self._score(machine, int(gap[machine]))
            if score >= SILENCE_SCORE and not self.inputs.overrides.is_usual_gap(machine, int(gap[machine])):
                emitted += self._start(machine, window, score)
        return emitted

    def next_gone(self, window: int) -> int:
        """The first window after this one in which a machine is gone if nothing comes; NEVER if there is no machine."""
        soonest = int(self._gone_from().min(initial=NEVER))
        return max(soonest, window + 1)

    def take_gone(self, window: int) -> tuple[Ints, list[Novelty]]:
        """The machines that are gone since this window, which are followed no longer; and the records that say so.

        Of a machine that was never regular there is none, nor where an operator has called its silence normal.
        """
        gone = np.flatnonzero(self._gone_from() <= window)
        return gone, [record for machine in gone.tolist() for record in self._gone(machine, window)]

    def _gone_from(self) -> Ints:
        """The window from which on each machine is gone, unless it is seen before; see KnownMachines.gone_from."""
        found = self.machines.gone_from(self.settings.gone_windows, self.settings.state_ttl_windows)
        for machine, time in self.machines.retired_at.items():
            retired = -(-time // self.settings.window_nano)
            found[machine] = min(found[machine], max(retired, int(self.machines.last[machine]) + 1))
        return found

    def _gone(self, machine: int, window: int) -> Iterator[Novelty]:
        time = self.settings.end_of(window)
        is_retired = self.machines.retired_at.get(machine, time + 1) <= time
        now: Novelty = {"verdict": "gone", "statistic": "retired" if is_retired else "presence"}
        silence = self.silent.pop(machine, None)
        if silence is not None:
            now["observed"] = (time - self.settings.end_of(int(self.machines.last[machine]))) / 1e9
            record = novelties.later(silence, "end", time, **now)
        elif is_retired and self.machines.present[machine] >= self.settings.warmup_windows:
            name, place = self.machines.names[machine], self.inputs.place(machine)
            record = novelties.start(name, kind="machine", time_unix_nano=time, score=0.0, **now, **place)
            record["phase"] = "end"  # there is nothing that could follow
        else:
            return
        if not self.inputs.overrides.suppresses(record):
            yield record | {"text": novelties.gone_text(record)}

    def _score(self, machine: int, gap: int) -> float:
        """-ln of the probability of `gap` missed windows in a row: presence is Bernoulli, its rate Beta."""
        seen, missed = self.machines.present[machine] + 1.0, self.machines.missed[machine] + 1.0
        return sum(log((seen + missed + i) / (missed + i)) for i in range(min(gap, MOST_GAPS)))

    def _usual_gap(self, machine: int) -> int:
        """The most windows that this machine may miss in a row without being called silent."""
        gap = self.settings.silence_windows - 1
        while gap < MOST_GAPS and self._score(machine, gap + 1) < SILENCE_SCORE:
            gap += 1
        return gap

    def _start(self, machine: int, window: int, score: float) -> list[Novelty]:
        last, time = int(self.machines.last[machine]), self.settings.end_of(window)
        record = novelties.start(
            self.machines.names[machine],
            "silence",
            "machine",
            time,
            since_unix_nano=self.settings.end_of(last + 1),
            **self.inputs.place(machine),
            score=score,
            statistic="presence",
            unit="s",
            observed=(time - self.settings.end_of(last)) / 1e9,
            expected_low=0.0,
            expected_high=self._usual_gap(machine) * self.settings.window_seconds,
        )
        if self.inputs.overrides.suppresses(record):
            return []
        self.silent[machine] = {**record, "text": novelties.silence_text(record)}
        return [self.silent[machine]]
