"""What a window's records say of each series, for the model."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from jobs.detector.model.arrays import Floats, Ints
from jobs.detector.model.protocol import Judgement
from jobs.detector.model.scales import Scales
from jobs.detector.population.machines import KnownMachines
from jobs.detector.population.series import KnownSeries

Record = Mapping[str, Any]

LARGEST = 1e18  # what is greater counts as this, so that the square of any two values' difference is a float32


class Observations(NamedTuple):
    """A window of some series: their rows, values, and how many samples made each.

    A value is a metric's mean, or what is missing of a share that succeeds, or a template's count.
    """

    rows: Ints
    values: Floats
    samples: Floats


class ObservationReader:
    """Reads records of `statistics`; series that are new there are added to those known, and to the model."""

    def __init__(self, machines: KnownMachines, series: KnownSeries, model: Scales) -> None:
        self.machines, self.series, self.model = machines, series, model

    def read(self, window: int, records: Sequence[Record], present: Ints) -> Observations:
        """Each row once. A template without lines in a window counts as zero, if its machine is `present`."""
        parts = [self._of_record(record) for record in records]
        self._add_new(window)
        if not parts:
            return Observations(np.zeros(0, np.int64), np.zeros(0), np.zeros(0))
        rows, values, samples = (np.concatenate(column) for column in zip(*parts, strict=True))
        rows, at = np.unique(rows, return_index=True)
        self.series.last[rows] = window
        absent = self._absent_counts(rows, present)
        zeros = np.zeros(len(absent))
        return Observations(
            np.concatenate([rows, absent]),
            np.concatenate([self.series.complement(rows, values[at]), zeros]),
            np.concatenate([samples[at], zeros + 1.0]),
        )

    def in_own_unit(self, judgement: Judgement) -> Judgement:
        """What the model says of such values, as people know the series."""
        if not self.series.has_shares:
            return judgement
        seen = (judgement.observed, judgement.expected, judgement.low, judgement.high)
        observed, expected, one, other = (self.series.complement(judgement.rows, value) for value in seen)
        return replace(
            judgement,
            observed=observed,
            expected=expected,
            low=np.minimum(one, other),
            high=np.maximum(one, other),
        )

    def _of_record(self, record: Record) -> Observations:
        statistics, machine = record["statistics"], self.machines.number(record["machine"])
        assert machine is not None
        samples = np.array(statistics["count"], np.float64)
        means = np.array(statistics["mean"], np.float64) if "mean" in statistics else np.full(len(samples), np.nan)
        values = np.where([kind == "log" for kind in statistics["kind"]], samples, means)
        usable = np.isfinite(values)  # the first point of a counter has no rate yet
        rows = self.series.rows_of(machine, statistics, usable, record.get("part", 0))
        return Observations(rows, np.clip(values[usable], -LARGEST, LARGEST), samples[usable])

    def _add_new(self, window: int) -> None:
        """All of a window at once, as each time copies the state of all."""
        new = self.series.add_new(window)
        if new.start == new.stop:
            return
        kinds = [self.series.describe(row).kind for row in range(new.start, new.stop)]
        past = np.maximum(self.machines.present[self.series.machine[new]] - 1, 0)
        self.model.add(np.array([kind == "log" for kind in kinds]), past, window)

    def _absent_counts(self, rows: Ints, present: Ints) -> Ints:
        here = np.zeros(len(self.machines.names), bool)
        here[present] = True
        absent = self.model.is_count() & here[self.series.machine]
        absent[rows] = False
        return np.flatnonzero(absent)
