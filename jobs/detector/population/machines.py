"""The machines of a shard: their numbers, when each was seen, and where it stands."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from infra.contract.inventory import places
from jobs.detector.model.arrays import Bools, Ints
from jobs.detector.saved_state import Saved

Inventory = Mapping[str, Any] | None


class KnownMachines:
    """Machines are numbered in the order in which they were first seen. Arrays have one element a machine."""

    def __init__(self, saved: Saved) -> None:
        self.names: list[str] = saved.items("machines")
        self.inventories: list[Inventory] = saved.items("inventories")
        self.first_window: int | None = saved.header.get("first_window")  # of the shard
        self.first, self.last = saved.ints("first"), saved.ints("last")  # windows in which each was seen
        self.present, self.missed = saved.ints("present"), saved.ints("missed")  # how many windows
        self._numbers = {name: number for number, name in enumerate(self.names)}
        self._census: Counter[tuple[str, str]] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def saved(self) -> Saved:
        header = {"machines": self.names, "inventories": self.inventories, "first_window": self.first_window}
        arrays = {"first": self.first, "last": self.last, "present": self.present, "missed": self.missed}
        return Saved(header, arrays)

    def start_window(self, window: int) -> None:
        """The places of machines are counted once a window."""
        if self.first_window is None:
            self.first_window = window
        self._census = None

    def number(self, name: str) -> int | None:
        """A machine's number; None if it was never seen."""
        return self._numbers.get(name)

    def numbers(self, names: Iterable[str]) -> Ints:
        """The numbers of known machines, ascending, each once."""
        return np.unique([self._numbers[name] for name in names]).astype(np.int64)

    def add(self, name: str, window: int, inventory: Inventory) -> int:
        """A machine that is seen for the first time, in this window; returns its number."""
        number = self._numbers[name] = len(self.names)
        self.names.append(name)
        self.inventories.append(inventory)
        self.first, self.last = np.append(self.first, window), np.append(self.last, window - 1)
        self.present, self.missed = np.append(self.present, 0), np.append(self.missed, 0)
        return number

    def see(self, window: int, present: Ints, most_missed: int) -> None:
        """These machines were seen in a window; of those that each missed before it, at most so many count."""
        self.missed[present] += np.minimum(window - self.last[present] - 1, most_missed)
        self.present[present] += 1
        self.last[present] = window

    def newest_window(self) -> int:
        """The newest window in which any machine was seen; 0 if there is none."""
        return int(self.last.max(initial=0))

    def age(self, machine: int, window: int) -> int:
        """The windows since a machine was first seen."""
        return window - int(self.first[machine])

    def matching(self, pattern: str) -> Bools:
        """Which machines' names meet a shell glob."""
        return np.array([fnmatchcase(name, pattern) for name in self.names], bool)

    def place(self, machine: int) -> dict[str, Any]:
        """Where a machine is, and how many machines of this shard are there too: fields of its novelty."""
        if self._census is None:
            each = map(places, self.names, self.inventories)
            self._census = Counter((kind, name) for one in each for kind, name in one.items())
        here = places(self.names[machine], self.inventories[machine])
        peers = {kind: self._census[kind, name] for kind, name in here.items()}
        return {"inventory": self.inventories[machine], "peers": {"machines": len(self.names), **peers}}
