"""The machines of a shard: their numbers, when each was seen, where it stands, and how long a silence may last."""

from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from infra.contract.inventory import VALID_TO, places
from jobs.detector.model.arrays import Bools, Ints
from jobs.detector.saved_state import Saved

Inventory = Mapping[str, Any] | None

NEVER = np.iinfo(np.int64).max
GONE_GAPS = 3  # a silence so many times as long as the longest one before it lasts for good

_ARRAYS = ("first", "last", "present", "missed", "longest_gap", "dropped")


class KnownMachines:
    """Machines are numbered in the order in which they were first seen. Arrays have one element a machine.

    A machine that is dropped keeps its number until the next `retain`, but it has no name any more: under the same name
    another one may be added.
    """

    def __init__(self, saved: Saved) -> None:
        self.names: list[str] = saved.items("machines")
        self.inventories: list[Inventory] = saved.items("inventories")
        self.first_window: int | None = saved.header.get("first_window")  # of the shard
        self.first, self.last = saved.ints("first"), saved.ints("last")  # windows in which each was seen
        self.present, self.missed = saved.ints("present"), saved.ints("missed")  # how many windows
        self.longest_gap = saved.ints("longest_gap")  # the most windows in a row that each missed and came back after
        self.dropped = saved.ints("dropped")  # 1 of a machine that is no longer there
        self.retired_at: dict[int, int] = dict(saved.items("retired_at"))  # unix ns, by machine
        self._index()
        self._census: Counter[tuple[str, str]] | None = None

    def _index(self) -> None:
        here = enumerate(zip(self.names, self.dropped.tolist(), strict=True))
        self._numbers = {name: number for number, (name, dropped) in here if not dropped}

    def __len__(self) -> int:
        """How many there are; numbers may be greater than that."""
        return len(self._numbers)

    def saved(self) -> Saved:
        header = {"machines": self.names, "inventories": self.inventories, "first_window": self.first_window}
        header["retired_at"] = sorted(self.retired_at.items())
        return Saved(header, {name: getattr(self, name) for name in _ARRAYS})

    def begin(self, window: int) -> None:
        """The shard is new in this window."""
        self.first_window = window

    def start_window(self) -> None:
        """The places of machines are counted once a window."""
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
        fresh = {"first": window, "last": window - 1}
        for array in _ARRAYS:
            setattr(self, array, np.append(getattr(self, array), fresh.get(array, 0)))
        return number

    def note_facts(self, machine: int, inventory: Inventory, begin: int) -> None:
        """What the newest record of a machine says of it, of a window that begins at `begin`, unix ns."""
        self.inventories[machine] = inventory
        if valid_to := (inventory or {}).get(VALID_TO):
            self.retired_at[machine] = valid_to
        elif self.retired_at.get(machine, begin + 1) <= begin:
            del self.retired_at[machine]  # it goes on all the same

    def see(self, window: int, present: Ints, most_missed: int) -> None:
        """These machines were seen in a window; of those that each missed before it, at most so many count."""
        gap = window - self.last[present] - 1
        self.missed[present] += np.minimum(gap, most_missed)
        self.longest_gap[present] = np.maximum(self.longest_gap[present], gap)
        self.present[present] += 1
        self.last[present] = window

    def newest_window(self) -> int:
        """The newest window in which any machine was seen; 0 if there is none."""
        return int(self.last.max(initial=0, where=self.dropped == 0))

    def gone_from(self, least: int, most: int) -> Ints:
        """The window from which on each machine is gone if it isn't seen before; never of one that was dropped.

        A silence lasts for good after some times the longest one before it, but after `least` to `most` windows.
        """
        after = np.clip(GONE_GAPS * self.longest_gap, min(least, most), most)
        return np.where(self.dropped, NEVER, self.last + after)

    def drop(self, machines: Ints) -> None:
        """These machines are no longer there."""
        self.dropped[machines] = 1
        for machine in machines.tolist():
            del self._numbers[self.names[machine]]
            self.retired_at.pop(machine, None)
        self._census = None

    def retain(self, machines: Ints) -> None:
        """Only these machines are left, under new numbers in the same order."""
        place = {old: new for new, old in enumerate(machines.tolist())}
        self.names = [self.names[number] for number in place]
        self.inventories = [self.inventories[number] for number in place]
        for name in _ARRAYS:
            setattr(self, name, getattr(self, name)[machines])
        self.retired_at = {place[machine]: time for machine, time in self.retired_at.items() if machine in place}
        self._index()
        self._census = None

    def age(self, machine: int, window: int) -> int:
        """The windows since a machine was first seen."""
        return window - int(self.first[machine])

    def matching(self, pattern: str) -> Bools:
        """Which machines' names meet a shell glob."""
        meets = np.array([fnmatchcase(name, pattern) for name in self.names], bool)
        return np.asarray(meets & (self.dropped == 0))

    def place(self, machine: int) -> dict[str, Any]:
        """Where a machine is, and how many machines of this shard are there too: fields of its novelty."""
        if self._census is None:
            each = (places(name, self.inventories[number]) for name, number in self._numbers.items())
            self._census = Counter((kind, name) for one in each for kind, name in one.items())
        here = places(self.names[machine], self.inventories[machine])
        peers = {kind: self._census[kind, name] for kind, name in here.items()}
        return {"inventory": self.inventories[machine], "peers": {"machines": len(self), **peers}}
