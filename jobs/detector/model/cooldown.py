"""The cooldown after an alert: what is said once isn't said again."""

from typing import ClassVar, Self

import numpy as np

from jobs.detector.model.arrays import Bools, Columns, Floats, Ints, Layout, PerRow

COOLDOWN_WINDOWS = 96  # after an alert of a series


class Cooldown(PerRow):
    """By series or machine: after an alert only more surprising windows are alerted, and nothing of larger scales."""

    LAYOUT: ClassVar[Layout] = {"until": np.dtype(np.int64), "score": np.dtype(np.float64)}

    def __init__(self, columns: Columns, windows: int = COOLDOWN_WINDOWS) -> None:
        """It lasts for so many windows."""
        super().__init__(columns)
        self.windows = windows

    @classmethod
    def of(cls, rows: int) -> Self:
        """Of so many rows, none of which is in its cooldown."""
        return cls({name: np.zeros(rows, kind) for name, kind in cls.LAYOUT.items()})

    def suppress(self, scale: int, rows: Ints, score: Floats, alert: Bools, now: Ints) -> Bools:
        """What remains of the alerts of these rows in the window `now`; `scale` is the scale's number.

        Those that remain start a cooldown.
        """
        until, loudest = self.columns["until"], self.columns["score"]
        louder = (now > until[rows]) | ((score > loudest[rows]) & (scale == 0))
        alert = alert & louder
        until[rows[alert]], loudest[rows[alert]] = now[alert] + self.windows, score[alert]
        return alert

    def start(self, rows: Ints, score: Floats, window: int) -> None:
        """Something else alerts what these rows would."""
        recent = np.where(self.columns["until"][rows] >= window, self.columns["score"][rows], 0.0)
        self.columns["score"][rows] = np.maximum(recent, score)
        self.extend(rows, window)

    def extend(self, rows: Ints, window: int) -> None:
        """These cooldowns begin anew in this window."""
        self.columns["until"][rows] = window + self.windows

    def is_on(self, rows: Ints, window: int | Ints) -> Bools:
        """Which of these rows are in their cooldown."""
        return np.asarray(self.columns["until"][rows] >= window)
