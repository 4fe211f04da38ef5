"""What is usual of each series over a long time, its level and its steps, and how far a window deviates from it.

The posteriors of the window model follow a change within minutes, as an alert must; incidents last for hours, and show
for as long beside moments that remember ten thousand windows. The moments are winsorised (Tukey 1962): a value beyond
CLIP deviations teaches as one at CLIP does. One that stays there is the new usual after STAYS windows.
"""

from typing import ClassVar, NamedTuple

import numpy as np

from jobs.detector.model.arrays import Columns, Floats, Ints, Layout, PerRow

MEMORY = 10_000.0  # windows
KNOWN_AFTER = 6  # windows; before, nothing deviates
YOUNG = 60.0  # windows that are learned as they are
CAUTION = 60.0  # windows of a level that are worth one independent observation of it
CLIP = 5.0  # deviations beyond which a value teaches no more
MOST = 20.0  # deviations; more say no more
FINEST = 0.01  # of the range of all that was seen: no deviation is smaller
STAYS = 100  # windows in a row beyond CLIP, on either side: then it is the usual level
APPROACH = 0.1  # of the way to a new usual level, each window
ARRIVED = 1.0  # deviations from there


Scales = tuple[Floats, Floats]  # of levels and of steps


class Deviations(NamedTuple):
    """By row, in deviations, at most MOST: of the level, and of the step since the window before; 0 if unknown."""

    level: Floats
    step: Floats


class LongMemory(PerRow):
    """Moments of each series; values are on the model's scale."""

    LAYOUT: ClassVar[Layout] = {
        "mean": np.dtype(np.float64),
        "variance": np.dtype(np.float64),
        "step_variance": np.dtype(np.float64),  # of the steps, around 0
        "least": np.dtype(np.float64),
        "greatest": np.dtype(np.float64),
        "last": np.dtype(np.float64),
        "last_window": np.dtype(np.int64),
        "windows": np.dtype(np.int64),  # that were seen, up to MEMORY
        "beyond": np.dtype(np.int64),  # windows in a row beyond CLIP
    }

    def step(self, rows: Ints, x: Floats, window: int) -> Deviations:
        """Compare the window's values of these rows with what is usual, then learn them."""
        of = {name: column[rows] for name, column in self.columns.items()}
        seen = of["windows"].astype(np.float64)
        x = np.clip(x, -1e150, 1e150)
        new = of["windows"] == 0
        of["least"], of["greatest"], of["mean"] = (np.where(new, x, of[one]) for one in ("least", "greatest", "mean"))
        finest = np.maximum(FINEST * (of["greatest"] - of["least"]), 1e-12)
        scale, step_scale = (np.maximum(np.sqrt(of[one]), finest) for one in ("variance", "step_variance"))
        offset = x - of["mean"]
        jump = np.where(of["last_window"] == window - 1, x - of["last"], 0.0)
        jump[new] = 0.0
        self._learn(of, rows, x, offset=offset, jump=jump, scales=(scale, step_scale))
        self.columns["last"][rows], self.columns["last_window"][rows] = x, window
        trust = np.where(of["windows"] >= KNOWN_AFTER, np.sqrt(seen / (seen + CAUTION)), 0.0)
        level, step = (trust * one / per for one, per in ((offset, scale), (jump, step_scale)))
        return Deviations(np.clip(level, -MOST, MOST), np.clip(step, -MOST, MOST))

    def windows(self) -> Floats:
        """Of how many windows the moments of each row are."""
        return self.columns["windows"].astype(np.float64)

    def forget(self, rows: Ints) -> None:
        """These series begin anew."""
        for column in self.columns.values():
            column[rows] = 0

    def _learn(self, of: Columns, rows: Ints, x: Floats, *, offset: Floats, jump: Floats, scales: Scales) -> None:
        scale, step_scale = scales
        young = of["windows"] < YOUNG
        near = np.where(of["beyond"] > STAYS, ARRIVED, CLIP) * scale
        beyond = np.where(~young & (np.abs(offset) > near), of["beyond"] + 1, 0)
        moves = beyond > STAYS
        taught = np.where(young, offset, np.clip(offset, -CLIP * scale, CLIP * scale))
        jump = np.where(young, jump, np.clip(jump, -CLIP * step_scale, CLIP * step_scale))
        share = 1.0 / np.minimum(of["windows"] + 1.0, MEMORY)
        spread = (1.0 - share) * (of["variance"] + share * taught * taught)
        columns = self.columns
        columns["mean"][rows] = of["mean"] + np.where(moves, APPROACH * offset, share * taught)
        columns["variance"][rows] = np.where(moves, of["variance"], spread)
        columns["step_variance"][rows] = of["step_variance"] + share * (jump * jump - of["step_variance"])
        columns["least"][rows] = np.minimum(of["least"], x)
        columns["greatest"][rows] = np.maximum(of["greatest"], x)
        columns["windows"][rows] = np.minimum(of["windows"] + 1, int(MEMORY))
        columns["beyond"][rows] = beyond
