"""Blocks of windows, put together online: what the models of larger scales judge."""

from typing import ClassVar, NamedTuple

import numpy as np

from jobs.detector.model.arrays import Columns, Floats, Ints, Layout, PerRow


class Closed(NamedTuple):
    """Blocks that have ended: whose (places among the rows), their number (end time / length), mean and windows."""

    at: Ints
    block: Ints
    value: Floats
    windows: Floats


class Blocks(PerRow):
    """Blocks of `ratio` windows, one open block a series. One ends when a window of a later one comes."""

    LAYOUT: ClassVar[Layout] = {
        "block": np.dtype(np.int64),
        "windows": np.dtype(np.int64),
        "total": np.dtype(np.float64),
    }

    def __init__(self, ratio: int, columns: Columns) -> None:
        super().__init__(columns)
        self.ratio = ratio

    def add(self, rows: Ints, window: Ints, value: Floats) -> Closed:
        """Add a window to each row's block; returns the blocks that ended before it."""
        number, windows, total = (self.columns[name][rows] for name in self.LAYOUT)
        block = -(-window // self.ratio)
        ended = (block != number) & (windows > 0)
        first = ended | (windows == 0)
        mean, present = total[ended] / windows[ended], windows[ended].astype(np.float64)
        closed = Closed(np.flatnonzero(ended), number[ended], mean, present)
        self.columns["block"][rows] = block
        self.columns["windows"][rows] = np.where(first, 1, windows + 1)
        self.columns["total"][rows] = np.where(first, value, total + value)
        return closed
