"""All series of a machine judged together: many weak surprises are a strong one, correlated ones count once."""

import numpy as np

from jobs.detector.model import SPELL_MEMORY, Columns, Ints
from jobs.detector.model_tails import Floats

MOST = 20.0  # that one window says of a machine

_FIELDS = {"spell": np.dtype(np.float64)}


class Machines:
    """The mean joint score of each machine's last windows, exponentially weighted; 8 bytes a machine."""

    def __init__(self, columns: Columns | None = None) -> None:
        self.columns = columns or {name: np.zeros(0, kind) for name, kind in _FIELDS.items()}

    def grow(self, more: int) -> None:
        self.columns = {name: np.pad(column, (0, more)) for name, column in self.columns.items()}

    def step(self, machine: Ints, score: Floats) -> tuple[Ints, Floats]:
        """The machines of a window, ascending, and the mean joint score s of the last windows of each.

        `machine` and `score` are of all the window's series. exp(-s) is the geometric mean of the windows'
        probabilities; e times that is a probability under any dependence (Vovk and Wang 2020).
        """
        present, group = np.unique(machine, return_inverse=True)
        now = np.minimum(joint_score(group, score), MOST)
        past = self.columns["spell"][present]
        mean = self.columns["spell"][present] = past + (now - past) / SPELL_MEMORY
        return present, mean


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
