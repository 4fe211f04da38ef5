"""Names of machines that are gone, in little memory: whether one that comes was there before."""

from collections.abc import Iterable
from hashlib import blake2b

import numpy as np

from jobs.detector.model.arrays import Ints
from jobs.detector.saved_state import Saved

MOST = 2**16  # names of a period; of more than that the oldest period ends early: 1 MB in all


class SeenBefore:
    """The hashes of names, 64 bits each, of the present period and of the one before."""

    def __init__(self, saved: Saved, period: int) -> None:
        """`period` in windows: a name is remembered for at least so long, and for at most twice that."""
        self.period = period
        self.begun: int = saved.header.get("names_begun", 0)  # the window in which the present period began
        self.newer: dict[int, None] = dict.fromkeys(saved.ints("names_newer").tolist())
        self.older: dict[int, None] = dict.fromkeys(saved.ints("names_older").tolist())

    def saved(self) -> Saved:
        arrays = {"names_newer": _array(self.newer), "names_older": _array(self.older)}
        return Saved({"names_begun": self.begun}, arrays)

    def add(self, names: Iterable[str], window: int) -> None:
        """Remember machines that are gone since this window."""
        for name in names:
            self._turn(window)
            self.newer[_hash(name)] = None

    def has(self, name: str, window: int) -> bool:
        """Whether a machine of this name was there, as far as is remembered."""
        self._turn(window)
        return _hash(name) in self.newer or _hash(name) in self.older

    def is_empty(self, window: int) -> bool:
        """Whether no name is remembered."""
        self._turn(window)
        return not (self.newer or self.older)

    def _turn(self, window: int) -> None:
        """Begin a new period if it is time, or the present one is full."""
        periods = (window - self.begun) // self.period
        if periods > 0 or len(self.newer) >= MOST:
            self.older = self.newer if periods < 2 else {}
            self.newer, self.begun = {}, window


def _hash(name: str) -> int:
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest(), signed=True)


def _array(hashes: Iterable[int]) -> Ints:
    return np.array(list(hashes), np.int64)
