"""What all trackers have in common: each follows novelties of one kind from their start to their end."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from jobs.detector import novelties
from jobs.detector.model.machines import MachineModel
from jobs.detector.model.scales import Scales
from jobs.detector.novelties import Novelty
from jobs.detector.overrides import OperatorOverrides
from jobs.detector.population.dependencies import dependencies
from jobs.detector.population.examples import WindowExamples
from jobs.detector.population.machines import KnownMachines
from jobs.detector.population.series import KnownSeries
from jobs.detector.saved_state import Saved
from jobs.detector.settings import DetectorSettings


@dataclass(frozen=True)
class Inputs:
    """What a tracker reads, and others own."""

    settings: DetectorSettings
    machines: KnownMachines
    series: KnownSeries
    model: Scales
    machine_model: MachineModel
    overrides: OperatorOverrides
    examples: WindowExamples = field(default_factory=WindowExamples)

    def place(self, machine: int) -> dict[str, Any]:
        """Where a machine is, who else is there, and what it depends on: fields of its novelty."""
        needed = dependencies(self.machines.inventories[machine], self.series.names_of(machine))
        return {**self.machines.place(machine), "depends_on": needed or None}


class Tracker(Protocol):
    """Owns the novelties of its kind that have not ended."""

    def saved(self) -> Saved:
        """Its part of the shard's state; the constructor takes it back."""
        ...

    def open_novelties(self) -> Iterable[Novelty]:
        """The newest record of each."""
        ...

    def discard(self, ids: set[str]) -> None:
        """Follow these no longer, without a record of their end."""
        ...


class RowTracker(Tracker, Protocol):
    """A tracker whose novelties are about some series."""

    def rows(self) -> Iterable[int]:
        """Of all these series, which must not be evicted."""
        ...

    def ids_about(self, rows: set[int]) -> set[str]:
        """The ids of novelties that are about any of these series."""
        ...

    def renumber(self, place: Mapping[int, int]) -> None:
        """Series have new rows."""
        ...


def end_novelties(trackers: Sequence[Tracker], wanted: Callable[[Novelty], bool], time: int, why: str) -> list[Novelty]:
    """End those that have not ended and are wanted; returns the records of their ends."""
    ended = [novelty for tracker in trackers for novelty in tracker.open_novelties() if wanted(novelty)]
    ids = {novelty["id"] for novelty in ended}
    for tracker in trackers:
        tracker.discard(ids)
    return [novelties.ended(novelty, time, why) for novelty in ended]
