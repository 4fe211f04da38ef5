"""All series of a machine judged together: many weak surprises are a strong one, correlated ones count once."""

from typing import NamedTuple

import numpy as np

from jobs.detector.model import SPELL_AFTER, SPELL_MEMORY, Columns, Ints
from jobs.detector.model_conjugate import Tail
from jobs.detector.model_scales import PerSeries, Quiet
from jobs.detector.model_tails import Floats, mean_score

MOST = 20.0  # that one window says of a machine, or so many times the threshold:
MOST_PASSES = 1.5
CALM = 3.0  # the joint score below which a machine is as usual
INDEPENDENT = 2.0  # windows that the last ones are worth: a machine's metrics move slowly
LIKE = 2 * int(SPELL_MEMORY) - 1  # windows whose means are nearly one observation
TAIL_MEMORY = 1000.0  # of these
LN2 = float(np.log(2.0))

_OF_TAIL = {name: np.dtype(np.float64) for name in Tail._fields}
_USUAL = {"spell": np.dtype(np.float64)} | _OF_TAIL
FIELDS: dict[str, np.dtype] = _USUAL | {f"quiet_{name}": kind for name, kind in Quiet.FIELDS.items()}
BYTES_PER_MACHINE = sum(kind.itemsize for kind in FIELDS.values())


class Joint(NamedTuple):
    """One window of some machines; arrays of one element a machine."""

    machines: Ints  # ascending
    now: Floats  # the joint score of this window
    mean: Floats  # of the last windows
    score: Floats  # -ln of the probability of either; 0 where a machine has one series, which speaks for itself


class Machines:
    """Each machine's mean joint score of its last windows, exponentially weighted, the tail of it, and what is told."""

    def __init__(self, columns: Columns | None = None) -> None:
        """`columns` are those of `dump`; without them there are no machines."""
        known = columns or {name: np.zeros(0, kind) for name, kind in FIELDS.items()}
        self.usual = PerSeries({name: known[name] for name in _USUAL})
        self.quiet = Quiet({name: known[f"quiet_{name}"] for name in Quiet.FIELDS})

    def __len__(self) -> int:
        return len(self.usual.columns["spell"])

    def dump(self) -> Columns:
        return self.usual.columns | {f"quiet_{name}": column for name, column in self.quiet.columns.items()}

    def grow(self, more: int) -> None:
        for part in (self.usual, self.quiet):
            part.grow(more)

    def step(self, machine: Ints, score: Floats, threshold: float, window: int) -> Joint:
        """Judge one window; `machine` and `score` are of all its series, `threshold` that of `tell`.

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
        past = self.usual.columns["spell"][present]
        self.usual.columns["spell"][present] = past + (now - past) / SPELL_MEMORY
        return np.asarray(self.usual.columns["spell"][present])

    def _lasting(self, present: Ints, mean: Floats, window: int) -> Floats:
        """-ln of the probability of such a mean, as far as the past supports it; what is told teaches nothing."""
        score = mean_score(mean, np.full(len(mean), INDEPENDENT))
        tail = Tail(*(self.usual.columns[name][present] for name in Tail._fields))
        if window % LIKE == 0:
            quiet = self.quiet.columns["until"][present] >= window
            after = tail.updated(score, 1.0 - 1.0 / TAIL_MEMORY)
            for name, old, new in zip(Tail._fields, tail, after, strict=True):
                self.usual.columns[name][present] = np.where(quiet, old, new)
        return np.where(LIKE * tail.windows >= SPELL_AFTER, tail.calibrated(score), 0.0)

    def tell(self, joint: Joint, busy: Ints, threshold: float, window: int) -> Joint:
        """Those of the machines that are to be told: their score passes, and it isn't what `busy` ones tell already."""
        at = np.flatnonzero(np.isin(joint.machines, busy))
        self.quiet.note(joint.machines[at], joint.score[at], window)
        numbers = np.full(len(joint.machines), window)
        told = self.quiet.pass_on(0, joint.machines, joint.score, joint.score >= threshold, numbers)
        return Joint(joint.machines[told], joint.now[told], joint.mean[told], joint.score[told])


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
