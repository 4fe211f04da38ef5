"""A machine judged as one: what all its series say together.

How *strange* a series is follows from what the other series of its machine don't explain of its level and of its step
(correlations.py), as deviations from what was usual for long (long_memory.py): the surprise under a Student t with
FREEDOM degrees of freedom, which forgives heavy tails (Lange, Little and Taylor 1989). From ONSET on it counts.

Two sums over the series of a machine are judged:

- the *evidence* of this window: as much of each series' strangeness as its own calibrated score supports. Scores are
  -ln of a probability, so those of series that say different things add up. A sum of n such excesses, each of which
  begins with probability e^-ONSET, is so large with at most the probability e^-(√sum - √(n e^-ONSET))² (Chernoff 1952).
- what *lasts*: the mean strangeness of the last windows. Nothing calibrates it, so TEMPER of it count as one.
"""

from math import exp
from typing import ClassVar, NamedTuple

import numpy as np

from jobs.detector.model import sustained
from jobs.detector.model.arrays import (
    Bools,
    Columns,
    Floats,
    Ints,
    Layout,
    PerRow,
    bytes_per_row,
    with_prefix,
    without_prefix,
)
from jobs.detector.model.cooldown import Cooldown
from jobs.detector.model.correlations import EVERY
from jobs.detector.model.elementary import ln1p
from jobs.detector.model.groups import Groups
from jobs.detector.model.long_memory import CLIP, LongMemory

FREEDOM = 8.0
ONSET = 4.0  # of a series' strangeness
TEMPER = 10.0
CALM = 3.0  # the evidence below which a machine is as usual
COOLDOWN_WINDOWS = 10  # after an alert of a machine

_MEMORY, _COOLDOWN = "long_", "cooldown_"


class Lasting(PerRow):
    """By machine: the mean strangeness of its last windows."""

    LAYOUT: ClassVar[Layout] = {"lasting": np.dtype(np.float64)}


BYTES_PER_MACHINE = bytes_per_row(Lasting.LAYOUT) + bytes_per_row(Cooldown.LAYOUT)


class Strangeness(NamedTuple):
    """By series of one window how strange it is, as a surprise: -ln of a density beside that of the usual value."""

    beside: Floats  # of what the other series of its machine don't explain: by this a machine is judged
    deviations: Floats  # from its own long memory, shape (2, series): of level and step

    def alone(self, at: Ints) -> Floats:
        """The surprise of the whole deviation of some of the series."""
        return _surprise(self.deviations[:, at])


class Joint(NamedTuple):
    """One window of some machines: arrays of one element a machine, and one of an element a series."""

    machines: Ints  # ascending
    now: Floats  # the evidence of this window, as -ln of a probability
    lasting: Floats  # the mean strangeness of the last windows
    score: Floats  # the greater of both; 0 where a machine has one series, which speaks for itself
    weight: Floats  # by series, as they were given: what of the score it accounts for


class MachineModel:
    """All machines of a shard, and what it takes of their series to judge them, by the rows of the series' model."""

    def __init__(self, arrays: Columns | None = None) -> None:
        """`arrays` are those of `dump`; without them there are no machines."""
        known = arrays or {}
        self.memory = LongMemory(without_prefix(_MEMORY, known, LongMemory.LAYOUT))
        self.groups = Groups(known)
        self.machines = Lasting(without_prefix("", known, Lasting.LAYOUT))
        self.cooldown = Cooldown(without_prefix(_COOLDOWN, known, Cooldown.LAYOUT), COOLDOWN_WINDOWS)

    def __len__(self) -> int:
        return len(self.machines)

    def dump(self) -> Columns:
        """The constructor's `arrays`."""
        own = self.machines.columns | with_prefix(_COOLDOWN, self.cooldown.columns)
        return own | with_prefix(_MEMORY, self.memory.columns) | self.groups.dump()

    def grow(self, more: int) -> None:
        """Append so many machines."""
        for part in (self.machines, self.cooldown):
            part.grow(more)

    def add(self, machine: Ints) -> None:
        """Append series: the machine of each."""
        rows = len(self.memory) + np.arange(len(machine))
        self.memory.grow(len(machine))
        self.groups.add(rows, machine)

    def retain(self, rows: Ints, machines: Ints) -> None:
        """Keep only these series and machines; both are renumbered, in this order."""
        self.groups.retain(rows, machines, len(self.memory))
        self.memory.retain(rows)
        for part in (self.machines, self.cooldown):
            part.retain(machines)

    def reset(self, rows: Ints) -> None:
        """These series begin anew."""
        self.memory.forget(rows)
        self.groups.forget(rows)

    def strangeness(self, rows: Ints, x: Floats, window: int) -> Strangeness:
        """How strange these series' values are, on the model's scale; then learn them."""
        found = self.memory.step(rows, x, window)
        deviations = np.zeros((2, len(self.memory) + 1))
        deviations[:, rows] = found
        left = self.groups.residuals(deviations)[:, rows]
        if window % EVERY == 0:
            self._teach(rows, deviations)
        return Strangeness(_surprise(left), deviations[:, rows])

    def _teach(self, rows: Ints, deviations: Floats) -> None:
        lesson = np.full_like(deviations, np.nan)
        lesson[:, rows] = np.clip(deviations[:, rows], -CLIP, CLIP)
        self.groups.learn(lesson, np.append(self.memory.windows(), 0.0))

    def judge(self, machine: Ints, strangeness: Floats, score: Floats) -> Joint:
        """Judge a window of machines: of all its series the machine, the strangeness and the calibrated score."""
        present, group, series = np.unique(machine, return_inverse=True, return_counts=True)
        supported = np.maximum(np.minimum(strangeness, score) - ONSET, 0.0)
        strange = np.maximum(strangeness - ONSET, 0.0)
        now = _chernoff(_sums(group, supported), series)
        before = self.machines.columns["lasting"][present]
        lasting = sustained.running_mean(before, _sums(group, strange))
        self.machines.columns["lasting"][present] = lasting
        is_now = now >= lasting / TEMPER
        joint = np.where(series > 1, np.where(is_now, now, lasting / TEMPER), 0.0)
        return Joint(present, now, lasting, joint, np.where(is_now[group], supported, strange))

    def alerts(self, joint: Joint, busy: Ints, threshold: float, window: int) -> Bools:
        """Which machines are to be alerted: their score passes, and no alert of a `busy` one says it already.

        A machine that stays as strange as when it was alerted isn't alerted again.
        """
        passes = joint.score >= threshold
        at = np.flatnonzero(np.isin(joint.machines, busy))
        self.cooldown.start(joint.machines[at], joint.score[at], window)
        numbers = np.full(len(joint.machines), window)
        stays = passes & self.cooldown.is_on(joint.machines, window)
        alert = self.cooldown.suppress(0, joint.machines, joint.score, passes, numbers)
        self.cooldown.extend(joint.machines[stays & ~alert], window)
        return alert


def _surprise(deviations: Floats) -> Floats:
    """Of levels and steps together, by Student t."""
    surprise = 0.5 * (FREEDOM + 1.0) * ln1p(deviations * deviations / FREEDOM)
    return np.asarray(surprise[0] + surprise[1])


def _sums(group: Ints, values: Floats) -> Floats:
    """The sum of each group's values."""
    return np.bincount(group, values).astype(np.float64)


def _chernoff(total: Floats, series: Ints) -> Floats:
    """-ln of a bound on the probability that the scores of so many series exceed ONSET by this much in all.

    An excess is none, or Exp(1) with probability e^-ONSET. With m such expected, the bound is smallest where it is
    (√total - √m)², if more than m has come.
    """
    expected = series * exp(-ONSET)
    return np.asarray(np.square(np.maximum(np.sqrt(total) - np.sqrt(expected), 0.0)))
