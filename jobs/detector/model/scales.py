"""The model on three scales: single windows, and means of blocks of 12 and of 96 of them.

What is too small to be seen in one window, or strange only because it lasts, shows in the mean of many.
"""

from dataclasses import replace
from math import log
from typing import Any

import numpy as np

from jobs.detector.model import season
from jobs.detector.model.arrays import (
    Bools,
    Columns,
    Floats,
    Ints,
    PerRow,
    bytes_per_row,
    of_prefix,
    with_prefix,
    without_prefix,
)
from jobs.detector.model.blocks import Blocks
from jobs.detector.model.cooldown import Cooldown
from jobs.detector.model.protocol import Judgement, Model
from jobs.detector.model.season import Season
from jobs.detector.model.series_state import LAYOUT, LAYOUT_OF_BLOCKS
from jobs.detector.model.window_model import WindowModel
from jobs.detector.settings import DetectorSettings

RATIOS = (12, 8)  # windows in a block, blocks in a block of the next scale
SCALES = (1, 12, 96)  # in windows
SETTLE_BLOCKS = 5
KNOWN_BLOCKS = 20  # of so few windows' means little is known: what stays is told by the episode of single windows
# A scale's share of the alarm budget falls with the square root of its length; it is judged less often than that.
# So much lower is its threshold.
THRESHOLD_OFFSETS = tuple(0.5 * log(scale) - log(sum(one**-0.5 for one in SCALES)) for scale in SCALES)

_SEASON = "season_"
BYTES_PER_SERIES = (
    bytes_per_row(LAYOUT)
    + len(RATIOS) * bytes_per_row(LAYOUT_OF_BLOCKS)
    + len(RATIOS) * bytes_per_row(Blocks.LAYOUT)
    + bytes_per_row(Cooldown.LAYOUT)
    + season.BYTES_PER_SERIES
)


class Scales:
    """All series of one shard, the same rows on each scale, each of which is a Model of its own."""

    def __init__(self, settings: DetectorSettings, arrays: Columns | None = None) -> None:
        """`arrays` are those of `dump`; without them there are no series."""
        known = arrays or {}
        self.season = Season(of_prefix(_SEASON, known))
        self.windows: Model = WindowModel(settings, without_prefix("m1_", known, LAYOUT), self.season)
        blocks = [
            WindowModel(_settings(settings, scale), without_prefix(f"m{scale}_", known, LAYOUT_OF_BLOCKS))
            for scale in SCALES[1:]
        ]
        self.models: tuple[Model, ...] = (self.windows, *blocks)
        self.blocks = tuple(
            Blocks(ratio, without_prefix(f"b{scale}_", known, Blocks.LAYOUT))
            for ratio, scale in zip(RATIOS, SCALES[1:], strict=True)
        )
        self.cooldown = Cooldown(without_prefix("cooldown_", known, Cooldown.LAYOUT))

    def __len__(self) -> int:
        return len(self.windows)

    def dump(self) -> Columns:
        """The constructor's `arrays`, each of one dimension."""
        arrays = with_prefix(_SEASON, self.season.dump()) | with_prefix("cooldown_", self.cooldown.columns)
        for scale, model in zip(SCALES, self.models, strict=True):
            arrays |= with_prefix(f"m{scale}_", model.dump())
        for scale, blocks in zip(SCALES[1:], self.blocks, strict=True):
            arrays |= with_prefix(f"b{scale}_", blocks.columns)
        return arrays

    def add(self, is_count: Bools, past_windows: Ints, window: int) -> Ints:
        """Append series and return their rows; see Model.add."""
        rows = [
            model.add(is_count, past_windows // scale, window // scale)
            for scale, model in zip(SCALES, self.models, strict=True)
        ]
        for part in (*self.blocks, self.cooldown):
            part.grow(len(is_count))
        return rows[0]

    def retain(self, rows: Ints) -> None:
        """Keep only these series; they are renumbered, in this order."""
        parts: tuple[Model | PerRow, ...] = (*self.models, *self.blocks, self.cooldown)
        for part in parts:
            part.retain(rows)

    def reset(self, rows: Ints, window: int) -> None:
        """Make these series new ones, which keep their numbers."""
        order = np.arange(len(self))
        order[rows] = self.add(self.is_count(rows), np.zeros(len(rows), np.int64), window)
        self.retain(order)

    def is_count(self, rows: Ints | None = None) -> Bools:
        """Which of these series, or of all, are counts of log lines."""
        return self.windows.is_count(rows)

    def phase(self, rows: Ints) -> Ints:
        """The Phase of each of these series, on the scale of single windows."""
        return self.windows.phase(rows)

    def figures(self) -> dict[str, list[Any]]:
        """What is held on the scale of single windows, by name, with one element a series: for people."""
        return self.windows.figures()

    def start_cooldown(self, rows: Ints, score: Floats, window: int) -> None:
        """Something else alerts what these series would: their own alerts are suppressed for a while."""
        self.cooldown.start(rows, score, window)

    def step(
        self, window: int | Ints, rows: Ints, value: Floats, samples: Floats, threshold: float | Floats
    ) -> list[Judgement]:
        """Judge, then learn, one window; judgements by scale, of larger ones where it is the first after a block."""
        now = numbers = np.broadcast_to(window, rows.shape)
        thresholds = np.broadcast_to(threshold, rows.shape)
        judgement = self.windows.step(window, rows, value, samples, thresholds - THRESHOLD_OFFSETS[0])
        judgements = [self._suppress_during_cooldown(0, judgement, now)]
        for at, blocks in enumerate(self.blocks, start=1):
            closed = blocks.add(judgement.rows, numbers, judgement.observed)
            if not len(closed.at):
                break
            rows, now, numbers = judgement.rows[closed.at], now[closed.at], closed.block
            thresholds = thresholds[closed.at]
            value = np.where(self.is_count(rows), closed.value * blocks.ratio, closed.value)
            judgement = self.models[at].step(
                numbers,
                rows,
                value,
                closed.windows,
                thresholds - THRESHOLD_OFFSETS[at],
                unresolved=self.windows.unresolved(rows),
            )
            judgements.append(self._suppress_during_cooldown(at, judgement, now))
        return judgements

    def _suppress_during_cooldown(self, at: int, judgement: Judgement, now: Ints) -> Judgement:
        score, untold = judgement.score + THRESHOLD_OFFSETS[at], self._untold(at, judgement, now)
        alert = self.cooldown.suppress(at, judgement.rows, score, judgement.alert | untold, now)
        return replace(judgement, alert=alert, settled=untold)

    def _untold(self, at: int, judgement: Judgement, now: Ints) -> Bools:
        """Which episodes of single windows have settled without an alert, in series too young for blocks to tell."""
        untold = judgement.settled & (at == 0)
        settled = np.flatnonzero(untold)
        rows = judgement.rows[settled]
        is_young = self.models[1].seen(rows) < KNOWN_BLOCKS
        untold[settled] = is_young & ~self.cooldown.is_on(rows, now[settled])
        return untold


def _settings(settings: DetectorSettings, scale: int) -> DetectorSettings:
    changes = {"window_seconds": settings.window_seconds * scale, "settle_windows": SETTLE_BLOCKS}
    return settings.model_copy(update=changes)
