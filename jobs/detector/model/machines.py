"""All series of a machine judged together: many weak surprises are a strong one, correlated ones count once."""

from typing import NamedTuple

import numpy as np

from jobs.detector.model import sustained
from jobs.detector.model.arrays import (
    Columns,
    Floats,
    Ints,
    Layout,
    PerRow,
    bytes_per_row,
    with_prefix,
    without_prefix,
)
from jobs.detector.model.conjugate import Tail, of_rows, replaced_where
from jobs.detector.model.cooldown import Cooldown
from jobs.detector.model.tails import mean_score

MOST = 20.0  # that one window says of a machine, or so many times the threshold:
MOST_PASSES = 1.5
CALM = 3.0  # the joint score below which a machine is as usual
INDEPENDENT = 2.0  # windows that the last ones are worth: a machine's metrics move slowly
LIKE = 2 * int(sustained.MEMORY) - 1  # windows whose means are nearly one observation
TAIL_MEMORY = 1000.0  # of these
LN2 = float(np.log(2.0))

_TAIL: Layout = {name: np.dtype(np.float64) for name in Tail._fields}
_USUAL: Layout = {"sustained": np.dtype(np.float64)} | _TAIL
_COOLDOWN = "cooldown_"
BYTES_PER_MACHINE = bytes_per_row(_USUAL) + bytes_per_row(Cooldown.LAYOUT)


class Joint(NamedTuple):
    """One window of some machines; arrays of one element a machine."""

    machines: Ints  # ascending
    now: Floats  # the joint score of this window
    mean: Floats  # of the last windows
    score: Floats  # -ln of the probability of either; 0 where a machine has one series, which speaks for itself


class MachineModel:
    """Each machine's mean joint score of its last windows, exponentially weighted, its tail, and a cooldown."""

    def __init__(self, columns: Columns | None = None) -> None:
        """`columns` are those of `dump`; without them there are no machines."""
        known = columns or {}
        self.usual = PerRow(without_prefix("", known, _USUAL))
        self.cooldown = Cooldown(without_prefix(_COOLDOWN, known, Cooldown.LAYOUT))

    def __len__(self) -> int:
        return len(self.usual)

    def dump(self) -> Columns:
        """The constructor's `columns`."""
        return self.usual.columns | with_prefix(_COOLDOWN, self.cooldown.columns)

    def grow(self, more: int) -> None:
        """Append so many machines."""
        for part in (self.usual, self.cooldown):
            part.grow(more)

    def retain(self, machines: Ints) -> None:
        """Keep only these machines; they are renumbered, in this order."""
        for part in (self.usual, self.cooldown):
            part.retain(machines)

    def step(self, machine: Ints, score: Floats, threshold: float, window: int) -> Joint:
        """Judge one window; `machine` and `score` are of all its series, `threshold` that of `alerts`.

        Of the window's joint score and the calibrated one of the last windows the greater counts, less ln 2
        (Bonferroni).
        """
        present, group, series = np.unique(machine, return_inverse=True, return_counts=True)
        now = np.minimum(joint_score(group, score), max(MOST, MOST_PASSES * threshold))
        mean = self._mean(present, now)
        lasting = self._lasting(present, mean, window)
        together = np.maximum(np.maximum(now, lasting) - LN2, 0.0)
        return Joint(present, now, mean, np.where(series > 1, together, 0.0))

    def _mean(self, present: Ints, now: Floats) -> Floats:
        mean = sustained.running_mean(self.usual.columns["sustained"][present], now)
        self.usual.columns["sustained"][present] = mean
        return mean

    def _lasting(self, present: Ints, mean: Floats, window: int) -> Floats:
        """-ln of the probability of such a mean, as far as the past supports it; what is alerted teaches nothing."""
        score = mean_score(mean, np.full(len(mean), INDEPENDENT))
        tail = of_rows(Tail(*(self.usual.columns[name] for name in Tail._fields)), present)
        if window % LIKE == 0:
            learned = tail.updated(score, 1.0 - 1.0 / TAIL_MEMORY)
            after = replaced_where(self.cooldown.is_on(present, window), tail, learned)
            for name, values in zip(Tail._fields, after, strict=True):
                self.usual.columns[name][present] = values
        return np.where(LIKE * tail.windows >= sustained.KNOWN_AFTER, tail.calibrated(score), 0.0)

    def alerts(self, joint: Joint, busy: Ints, threshold: float, window: int) -> Joint:
        """Those machines that are to be alerted: their score passes, and no alert of a `busy` one says it already."""
        at = np.flatnonzero(np.isin(joint.machines, busy))
        self.cooldown.start(joint.machines[at], joint.score[at], window)
        numbers = np.full(len(joint.machines), window)
        alert = self.cooldown.suppress(0, joint.machines, joint.score, joint.score >= threshold, numbers)
        return Joint(joint.machines[alert], joint.now[alert], joint.mean[alert], joint.score[alert])


def joint_score(group: Ints, score: Floats) -> Floats:
    """-ln of the harmonic mean of each group's probabilities (Wilson 2019), nearly one itself under any dependence.

    So the strongest series leads, copies of one say no more than one, and several strange ones more than one.
    `group` numbers the groups from 0 on, one number for each score.
    """
    members = np.bincount(group)
    strongest = np.zeros(len(members))
    np.maximum.at(strongest, group, score)
    total = np.bincount(group, np.exp(score - strongest[group]))
    return np.asarray(np.maximum(strongest + np.log(total / members), 0.0))
