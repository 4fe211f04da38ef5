"""One window of some series beside what their posteriors expect: what scores, intervals and updates are made of."""

from dataclasses import dataclass

import numpy as np

from jobs.detector.model.arrays import Bools, Floats
from jobs.detector.model.conjugate import GammaPoisson, Nig
from jobs.detector.model.season import HourPredictive
from jobs.detector.model.tails import MAX_SCORE


@dataclass(frozen=True)
class Evidence:
    """Arrays of one element a series. `x` and all that is compared with it are on the model's scale."""

    x: Floats
    last: Floats  # the value of the window before
    count: Floats  # of log lines; 0 of a metric
    samples: Floats
    weight: Floats  # of the window mean: its samples beside the usual number, at most 1
    deviation: Floats  # from the usual level, less what is unresolved
    jump: Floats  # since the window before
    jump_deviation: Floats  # from the usual jump, less what is unresolved
    jump_weight: Floats
    has_past: Bools  # whether there was a window before
    is_long_known: Bools  # whether it has lasted long enough to say what lasts
    normal: Nig
    rate: GammaPoisson
    jumps: Nig
    independence: Floats
    floor: Floats
    unresolved: Floats  # what a value may deviate as the values of its windows are rounded
    limit: Floats  # of scores: what a change of a nearly constant metric can say at most
    hour: HourPredictive
    level_score: Floats
    recent_level_score: Floats  # the mean of the last windows, with this one

    @property
    def whole(self) -> Floats:
        """The weight 1 for each series."""
        return np.ones_like(self.x)

    def level_trust(self) -> Floats:
        """The weight of this window in the posteriors of the level: an outlier's influence is bounded."""
        return self._trust(self.deviation / self.normal.scale(self.weight, self.independence, self.floor))

    def step_trust(self) -> Floats:
        """The same in the posterior of the steps."""
        return self._trust(self.jump_deviation / self.jumps.scale(self.jump_weight, self.whole, self.floor))

    def hour_trust(self) -> Floats:
        """The same in the profile of the hours."""
        trust = self._trust((self.x - self.hour.expected) / self.hour.scale)
        return np.where(self.hour.score > 0, trust, 1.0)

    def _trust(self, z: Floats) -> Floats:
        """Weight of an observation z scales away: it falls with the cube beyond 3; all, while a scale isn't known."""
        rarely_changes = self.limit < MAX_SCORE
        return np.where(rarely_changes, 1.0, np.minimum(1.0, _cube(3.0 / np.maximum(np.abs(z), 1e-9))))


def _cube(x: Floats) -> Floats:
    return x * x * x  # np.power differs between processors
