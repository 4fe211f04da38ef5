"""Types of the model's arrays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]
Columns = dict[str, NDArray[Any]]  # by name, each with one element a row
Layout = dict[str, np.dtype[Any]]  # the types of columns, by name


def bytes_per_row(layout: Layout) -> int:
    return sum(kind.itemsize for kind in layout.values())


def with_prefix(prefix: str, columns: Columns) -> Columns:
    """The same columns, named as they are packed beside those of other parts."""
    return {prefix + name: column for name, column in columns.items()}


def without_prefix(prefix: str, arrays: Columns, layout: Layout) -> Columns:
    """The inverse of `with_prefix`: this part's columns among packed arrays; columns without rows if there are none."""
    return {name: arrays.get(prefix + name, np.zeros(0, kind)) for name, kind in layout.items()}


def of_prefix(prefix: str, arrays: Columns) -> Columns:
    """All arrays whose names begin with it, without it."""
    return {name.removeprefix(prefix): one for name, one in arrays.items() if name.startswith(prefix)}


class PerRow:
    """Columns of one element a row (a series or a machine), which grow and are renumbered together."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def grow(self, more: int) -> None:
        """Append so many rows of zeros."""
        self.columns = {
            name: np.concatenate([column, np.zeros(more, column.dtype)]) for name, column in self.columns.items()
        }

    def retain(self, rows: Ints) -> None:
        """Keep these rows only, in this order."""
        self.columns = {name: column[rows] for name, column in self.columns.items()}
