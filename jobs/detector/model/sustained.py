"""The mean score of the last windows: is a series, or a machine, a little strange for too long?"""

import numpy as np

from jobs.detector.model.arrays import Floats

MEMORY = 5.0  # windows
CAP = 6.0  # of one window's score: one alone says little
KNOWN_AFTER = 40  # windows; before, the level's own error makes neighbouring scores alike


def running_mean(past: Floats, score: Floats) -> Floats:
    """The mean score of the last windows, exponentially weighted, after one more."""
    return past + (score - past) / MEMORY


def capped_running_mean(past: Floats, score: Floats) -> Floats:
    """The same of scores that count up to CAP."""
    return running_mean(past, np.minimum(score, CAP))
