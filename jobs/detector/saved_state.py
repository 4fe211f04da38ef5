"""What the parts of a shard keep between two calls, before it is packed."""

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from jobs.detector.model.arrays import Columns, Ints


class Saved(NamedTuple):
    """Values that JSON can hold, and arrays, by name. Each part of a shard knows its own names, and no others."""

    header: dict[str, Any]
    arrays: Columns

    def ints(self, name: str) -> Ints:
        """An array of integers; without elements in a shard that is new."""
        return self.arrays.get(name, np.zeros(0, np.int64))

    def items(self, name: str) -> list[Any]:
        """A list; empty in a shard that is new."""
        found: list[Any] = self.header.get(name, [])
        return found


NOTHING = Saved({}, {})


def joined(*parts: Saved) -> Saved:
    """All of them as one."""
    return reduce(lambda one, other: Saved(one.header | other.header, one.arrays | other.arrays), parts, NOTHING)
