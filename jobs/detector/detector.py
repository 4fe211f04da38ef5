"""One window of a shard: everybody's records, then the model, then the trackers, in this order."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from infra.contract.sharding import Mine
from jobs.detector.apply_control import ControlApplier
from jobs.detector.budget import AlarmBudget
from jobs.detector.model.arrays import Ints, of_prefix, with_prefix
from jobs.detector.model.machines import MachineModel
from jobs.detector.model.protocol import Judgement
from jobs.detector.model.scales import SCALES, Scales
from jobs.detector.novelties import Novelty
from jobs.detector.overrides import OperatorOverrides
from jobs.detector.population.examples import WindowExamples
from jobs.detector.population.machines import KnownMachines
from jobs.detector.population.observations import ObservationReader
from jobs.detector.population.seen_before import SeenBefore
from jobs.detector.population.series import KnownSeries
from jobs.detector.population.workloads import by_workload
from jobs.detector.saved_state import Saved, joined
from jobs.detector.settings import DetectorSettings
from jobs.detector.trackers.machines import MachineTracker
from jobs.detector.trackers.new_entities import NewEntityTracker
from jobs.detector.trackers.series import SeriesTracker
from jobs.detector.trackers.silence import SilenceTracker
from jobs.detector.trackers.tracker import Inputs, Tracker, end_novelties

EVICT_EVERY = 360  # windows
OPEN_TTLS = 2  # times the state TTL: so long a series with an open novelty is kept without being seen
MACHINE_MODEL = "machine_"  # before the names of its arrays
MOST_DROPPED = 64  # machines that wait for their eviction, beside as many as there are

Record = Mapping[str, Any]


class Detector:
    """All machines and series of one shard. Its state after a window depends on the records alone."""

    def __init__(self, settings: DetectorSettings, saved: Saved) -> None:
        self.settings = settings
        self.machines, self.series = KnownMachines(saved), KnownSeries(saved)
        self.seen_before = SeenBefore(saved, settings.seen_before_windows)
        self.model = Scales(settings, saved.arrays)
        self.overrides = OperatorOverrides(saved.header.get("overrides", {}))
        self.machine_model = MachineModel(of_prefix(MACHINE_MODEL, saved.arrays))
        self.budget = AlarmBudget(settings, self.series, saved)
        self.examples = WindowExamples()
        inputs = Inputs(
            settings, self.machines, self.series, self.model, self.machine_model, self.overrides, self.examples
        )
        self.series_tracker = SeriesTracker(inputs, saved)
        self.machine_tracker = MachineTracker(inputs, saved)
        self.silence_tracker = SilenceTracker(inputs, saved)
        self.new_entity_tracker = NewEntityTracker(inputs, saved)
        self._row_trackers = (self.series_tracker, self.machine_tracker)
        self._trackers: tuple[Tracker, ...] = (*self._row_trackers, self.silence_tracker, self.new_entity_tracker)
        self._reader = ObservationReader(self.machines, self.series, self.model)
        self._controls = ControlApplier(inputs, self._row_trackers, self.silence_tracker, self.new_entity_tracker)

    def saved(self) -> Saved:
        """The constructor's argument."""
        arrays = self.model.dump() | with_prefix(MACHINE_MODEL, self.machine_model.dump())
        known = (self.machines, self.series, self.seen_before, self.budget)
        parts = [*(part.saved() for part in known), *(tracker.saved() for tracker in self._trackers)]
        return joined(Saved({"overrides": self.overrides.packed()}, arrays), *parts)

    def apply_control(self, control: Record, window: int) -> list[Novelty]:
        """Do what an operator says, before `window` takes its step."""
        return self._controls.apply_control(control, window)

    def step(self, window: int, records: Sequence[Record]) -> list[Novelty]:
        """All records of a window; returns the records of novelties that it causes."""
        if not len(self.machines) and self.seen_before.is_empty(window):
            self.machines.begin(window)
        self.machines.start_window()
        records, members = by_workload(records)
        self.examples.start_window(records)
        ended = self._leave_to_workloads(window, members)
        present, emitted = self._see_machines(window, records)
        emitted = ended + emitted + self._judge(window, records, present)
        emitted += self.silence_tracker.judge(window)
        emitted += self._drop_gone(window)
        if window % EVICT_EVERY == 0 or self.machines.dropped.sum() > len(self.machines) + MOST_DROPPED:
            emitted += self._evict(window)
        return emitted

    def next_gone(self, window: int) -> int:
        """The first window after this one in which a machine is gone if nothing comes."""
        return self.silence_tracker.next_gone(window)

    def retain(self, mine: Mine) -> None:
        """Forget the machines that aren't `mine`: a machine or workload goes by its name, which is its key.

        What isn't a machine's stays: since when the shard has been there, what has been alerted of its classes of
        series, and the hashes of names seen before, of which nobody will ask for others than its own.
        """
        theirs = {
            one["id"] for tracker in self._trackers for one in tracker.open_novelties() if not mine(one["machine"])
        }
        for tracker in self._trackers:
            tracker.discard(theirs)
        self.overrides.retain_rules(mine)
        machines = np.array([mine(name) for name in self.machines.names], np.bool_)
        self._retain(np.flatnonzero(machines[self.series.machine]), np.flatnonzero(machines))

    def _see_machines(self, window: int, records: Sequence[Record]) -> tuple[Ints, list[Novelty]]:
        """The machines of this window (numbers, ascending), and what that they are seen starts and ends."""
        started = []
        for record in records:
            machine = self.machines.number(record["machine"])
            if machine is None:
                machine, novelties = self._add_machine(window, record)
                started += novelties
            self.machines.note_facts(machine, record.get("inventory"), self.settings.end_of(window - 1))
        present = self.machines.numbers(record["machine"] for record in records)
        self.machines.see(window, present, self.settings.silence_windows)
        ended = self.new_entity_tracker.end_known(window) + self.silence_tracker.end(window, present)
        return present, ended + started

    def _add_machine(self, window: int, record: Record) -> tuple[int, list[Novelty]]:
        machine = self.machines.add(record["machine"], window, record.get("inventory"))
        self.machine_model.grow(1)
        seen_before = self.seen_before.has(record["machine"], window)
        return machine, self.new_entity_tracker.add_machine(machine, window, seen_before=seen_before)

    def _leave_to_workloads(self, window: int, members: set[str]) -> list[Novelty]:
        """Machines that were judged alone until the inventory named their workload are no longer there."""
        known = sorted(number for name in members if (number := self.machines.number(name)) is not None)
        return self._drop(np.array(known, np.int64), window, "its workload is judged from now on")

    def _drop_gone(self, window: int) -> list[Novelty]:
        gone, emitted = self.silence_tracker.take_gone(window)
        self.seen_before.add((self.machines.names[machine] for machine in gone.tolist()), window)
        return emitted + self._drop(gone, window, "its machine is gone")

    def _drop(self, machines: Ints, window: int, why: str) -> list[Novelty]:
        """These machines are no longer there, and nothing of them stays open."""
        if not len(machines):
            return []
        names = {self.machines.names[machine] for machine in machines.tolist()}
        ended = end_novelties(self._trackers, lambda one: one["machine"] in names, self.settings.end_of(window), why)
        self.machines.drop(machines)
        return ended

    def _judge(self, window: int, records: Sequence[Record], present: Ints) -> list[Novelty]:
        known = len(self.model)
        rows, values, samples = self._reader.read(window, records, present)
        if not len(rows):
            return []
        self.machine_model.add(self.series.machine[known:])
        self.budget.start_window(window)
        found = self.model.step(window, rows, values, samples, self.budget.thresholds_of_series(rows))
        judgements = [self._reader.in_own_unit(judgement) for judgement in found]
        emitted, judgements[0] = self._start_new(judgements[0], known, window)
        busy = self.machine_tracker.in_anomaly()
        for scale, judgement in zip(SCALES, judgements, strict=False):
            emitted += self.series_tracker.judge(judgement, scale, window, busy)
        emitted += self._judge_machines(judgements[0], window)
        self.budget.note(emitted)
        return emitted

    def _start_new(self, judgement: Judgement, known: int, window: int) -> tuple[list[Novelty], Judgement]:
        """Novelties of new series (rows from `known` on), and the judgement without alerts about them."""
        started = self.new_entity_tracker.judge(judgement, known, window, set(self.series_tracker.rows()))
        if not started:
            return [], judgement
        novelties, rows, scores = zip(*started, strict=True)
        told = np.concatenate(rows)
        self.model.start_cooldown(told, np.concatenate(scores), window)
        return list(novelties), replace(judgement, alert=judgement.alert & ~np.isin(judgement.rows, told))

    def _judge_machines(self, judgement: Judgement, window: int) -> list[Novelty]:
        threshold = self.budget.threshold_of_machines(len(self.machines))
        return self.machine_tracker.judge(judgement, threshold, window, self.series_tracker.machines_in_episode())

    def _evict(self, window: int) -> list[Novelty]:
        """Evict the machines that are gone and the series that were not seen within their state TTL.

        A series with an open novelty is kept for longer; then the novelty ends.
        """
        ended = self._end_unseen(window - OPEN_TTLS * self.settings.state_ttl_windows, self.settings.end_of(window))
        kept = self.series.last > window - self._ttl()
        for tracker in self._row_trackers:
            kept[list(tracker.rows())] = True
        kept &= self.machines.dropped[self.series.machine] == 0
        machines = np.flatnonzero(self.machines.dropped == 0)
        if kept.all() and len(machines) == len(self.machines.names):
            return ended
        self._retain(np.flatnonzero(kept), machines)
        return ended

    def _ttl(self) -> Ints:
        """The state TTL of each series in windows: a short one where a machine has too many."""
        ttl = self.settings.state_ttl_windows
        if not len(self.series):
            return np.zeros(0, np.int64)
        many = np.bincount(self.series.machine) > self.settings.series_per_machine
        return np.where(many, min(EVICT_EVERY, ttl), ttl)[self.series.machine]

    def _end_unseen(self, oldest: int, time: int) -> list[Novelty]:
        """End the novelties of series that were not seen since `oldest`."""
        rows = {row for tracker in self._row_trackers for row in tracker.rows() if self.series.last[row] <= oldest}
        if not rows:
            return []
        ids = {identity for tracker in self._row_trackers for identity in tracker.ids_about(rows)}
        why = "its series has not come for longer than its state is kept"
        return end_novelties(self._row_trackers, lambda novelty: novelty["id"] in ids, time, why)

    def _retain(self, rows: Ints, machines: Ints) -> None:
        self.model.retain(rows)
        self.machine_model.retain(rows, machines)
        self.series.retain(rows, machines)
        self.budget.renumber()
        self.machines.retain(machines)
        row_place = {row: at for at, row in enumerate(rows.tolist())}
        machine_place = {machine: at for at, machine in enumerate(machines.tolist())}
        for part in (*self._row_trackers, self.new_entity_tracker, self.overrides):
            part.renumber(row_place)
        self.overrides.renumber_machines(machine_place)
        self.machine_tracker.retain_machines(machine_place)
        self.silence_tracker.retain_machines(machine_place)
        self.new_entity_tracker.retain_machines(machines)
