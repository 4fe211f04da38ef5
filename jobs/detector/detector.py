"""One window of a shard: everybody's records, then the model, then the trackers, in this order."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jobs.detector.apply_control import ControlApplier
from jobs.detector.budget import Budget
from jobs.detector.model.arrays import Ints
from jobs.detector.model.protocol import Judgement
from jobs.detector.model.scales import SCALES, Scales
from jobs.detector.novelties import Novelty
from jobs.detector.overrides import OperatorOverrides
from jobs.detector.population.machines import KnownMachines
from jobs.detector.population.observations import ObservationReader
from jobs.detector.population.series import KnownSeries
from jobs.detector.saved_state import Saved, joined
from jobs.detector.settings import DetectorSettings
from jobs.detector.trackers.machines import MachineTracker
from jobs.detector.trackers.new_entities import NewEntityTracker
from jobs.detector.trackers.series import SeriesTracker
from jobs.detector.trackers.silence import SilenceTracker
from jobs.detector.trackers.tracker import Inputs

EVICT_EVERY = 360  # windows

Record = Mapping[str, Any]


class Detector:
    """All machines and series of one shard. Its state after a window depends on the records alone."""

    def __init__(self, settings: DetectorSettings, saved: Saved) -> None:
        self.settings = settings
        self.machines, self.series = KnownMachines(saved), KnownSeries(saved)
        self.model = Scales(settings, saved.arrays)
        self.overrides = OperatorOverrides(saved.header.get("overrides", {}))
        self.budget = Budget(*saved.items("budget"))
        inputs = Inputs(settings, self.machines, self.series, self.model, self.overrides)
        self.series_tracker = SeriesTracker(inputs, saved)
        self.machine_tracker = MachineTracker(inputs, saved)
        self.silence_tracker = SilenceTracker(inputs, saved)
        self.new_entity_tracker = NewEntityTracker(inputs, saved)
        self._row_trackers = (self.series_tracker, self.machine_tracker)
        self._reader = ObservationReader(self.machines, self.series, self.model)
        self._controls = ControlApplier(inputs, self._row_trackers, self.silence_tracker, self.new_entity_tracker)

    def saved(self) -> Saved:
        """The constructor's argument."""
        own = {"overrides": self.overrides.packed(), "budget": (self.budget.alerts, self.budget.window)}
        parts = (self.machines, self.series, *self._row_trackers, self.silence_tracker, self.new_entity_tracker)
        return joined(Saved(own, self.model.dump()), *(part.saved() for part in parts))

    def apply_control(self, control: Record, window: int) -> list[Novelty]:
        """Do what an operator says, before `window` takes its step."""
        return self._controls.apply_control(control, window)

    def step(self, window: int, records: Sequence[Record]) -> list[Novelty]:
        """All records of a window; returns the records of novelties that it causes."""
        self.machines.start_window(window)
        present, emitted = self._see_machines(window, records)
        emitted += self._judge(window, records, present)
        emitted += self.silence_tracker.judge(window)
        if window % EVICT_EVERY == 0:
            self._evict(window)
        return emitted

    def _see_machines(self, window: int, records: Sequence[Record]) -> tuple[Ints, list[Novelty]]:
        """The machines of this window (numbers, ascending), and what that they are seen starts and ends."""
        started = []
        for record in records:
            machine = self.machines.number(record["machine"])
            if machine is None:
                machine, novelties = self._add_machine(window, record)
                started += novelties
            self.machines.inventories[machine] = record.get("inventory")
        present = self.machines.numbers(record["machine"] for record in records)
        self.machines.see(window, present, self.settings.silence_windows)
        ended = self.new_entity_tracker.end_known(window) + self.silence_tracker.end(window, present)
        return present, ended + started

    def _add_machine(self, window: int, record: Record) -> tuple[int, list[Novelty]]:
        machine = self.machines.add(record["machine"], window, record.get("inventory"))
        self.machine_tracker.model.grow(1)
        return machine, self.new_entity_tracker.add_machine(machine, window)

    def _judge(self, window: int, records: Sequence[Record], present: Ints) -> list[Novelty]:
        known = len(self.model)
        rows, values, samples = self._reader.read(window, records, present)
        if not len(rows):
            return []
        judgements = self.model.step(window, rows, values, samples, self._threshold(len(self.model), window))
        emitted: list[Novelty] = []
        busy = self.machine_tracker.in_anomaly()
        for scale, judgement in zip(SCALES, judgements, strict=False):
            emitted += self.series_tracker.judge(judgement, scale, window, busy)
        emitted += self._judge_machines(judgements[0], window)
        alerts = sum(one["verdict"] == "anomaly" and one["phase"] == "start" for one in emitted)
        self.budget.spend(self.settings, window, alerts)
        return emitted + self.new_entity_tracker.judge(judgements[0], known, window, set(self.series_tracker.rows()))

    def _judge_machines(self, judgement: Judgement, window: int) -> list[Novelty]:
        # Machines have as large a budget as series.
        threshold = self._threshold(len(self.machines), window)
        rows = np.array(list(self.series_tracker.rows()), np.int64)
        return self.machine_tracker.judge(judgement, threshold, window, self.series.machine[rows].tolist())

    def _threshold(self, judged: int, window: int) -> float:
        return self.settings.threshold(judged) + self.budget.surcharge(self.settings, window)

    def _evict(self, window: int) -> None:
        """Evict the series that were not seen within their state TTL and have no open novelty."""
        kept = self.series.last > window - self.settings.state_ttl_windows
        for tracker in self._row_trackers:
            kept[list(tracker.rows())] = True
        if kept.all():
            return
        rows = np.flatnonzero(kept)
        self.model.retain(rows)
        self.series.retain(rows)
        place = {row: at for at, row in enumerate(rows.tolist())}
        for part in (*self._row_trackers, self.overrides):
            part.renumber(place)
