"""Packed state: JSON values and numpy columns as parts, some bytes each. The same content gives the same bytes.

What has not changed between two batches is the same part, which need not be written again.
"""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np
import orjson
from numpy.typing import NDArray

from infra.errors import UserError

Header = dict[str, Any]
Columns = dict[str, NDArray[Any]]
Parts = dict[str, bytes]  # by name

Values = TypeVar("Values", bound=Mapping[str, Any])

HEAD = "head"  # the part that says which others there are
VALUE, COLUMN = "value/", "column/"  # before the names of the other parts
_NARROW = (np.int8, np.int16, np.int32)


class OldStateError(UserError):
    """A packed state that another version of a job has written, and that this one can't go on from."""


class Packed(NamedTuple):
    """A column as it is kept: its type, that of its bytes, how many numbers; the first if the bytes are differences."""

    kind: str
    narrow: str
    length: int
    first: int | None
    data: bytes

    @classmethod
    def of(cls, column: NDArray[Any]) -> "Packed":
        """Pack a column of one dimension."""
        held, first = _narrow(column)
        return cls(column.dtype.str, held.dtype.str, len(column), first, held.tobytes())

    def column(self) -> NDArray[Any]:
        """A copy that may be written to."""
        held = np.frombuffer(self.data, self.narrow).astype(self.kind)
        return held if self.first is None else np.cumsum(np.insert(held, 0, self.first))

    def column_or_view(self) -> NDArray[Any]:
        """The same to be read only: no copy, unless it is kept more narrowly than it is."""
        if self.first is None and self.kind == self.narrow:
            return np.frombuffer(self.data, self.kind)
        return self.column()


def pack(header: Header, columns: Mapping[str, NDArray[Any] | Packed]) -> Parts:
    """Columns behind values that JSON can hold. One that is packed already keeps its bytes, the same object."""
    values = {name: orjson.dumps(value) for name, value in header.items()}
    packed = {name: one if isinstance(one, Packed) else Packed.of(one) for name, one in columns.items()}
    layout = [(name, *one[:-1]) for name, one in packed.items()]
    # Nobody reads the lengths any more, but the states of earlier versions have them.
    parts = {HEAD: orjson.dumps([[(name, len(value)) for name, value in values.items()], layout])}
    parts |= {VALUE + name: value for name, value in values.items()}
    return parts | {COLUMN + name: one.data for name, one in packed.items()}


def unpack(parts: Mapping[str, bytes]) -> tuple[Header, Columns]:
    """(header, columns) of what `pack` gave, in their order; the columns may be written to."""
    header, packed = still_packed(parts)
    return header, {name: one.column() for name, one in packed.items()}


def still_packed(parts: Mapping[str, bytes]) -> tuple[Header, dict[str, Packed]]:
    """The same, with columns as they are kept."""
    values, layout = orjson.loads(parts[HEAD])
    header = {name: orjson.loads(parts[VALUE + name]) for name, _ in values}
    packed = {
        name: Packed(kind, narrow, length, first, parts[COLUMN + name]) for name, kind, narrow, length, first in layout
    }
    return header, packed


def check_names(found: Values, expected: Collection[str], job: str) -> Values:
    """The values or columns of a state, if their names are those that this version of a job writes.

    Raises OldStateError, saying what to do, otherwise.
    """
    if found.keys() != set(expected):
        raise OldStateError(
            f"{job}: its checkpoint holds the state of another version; start a new generation from the log: "
            f"kappa replay start --job {job} --from earliest --as NAME"
        )
    return found


def _narrow(column: NDArray[Any]) -> tuple[NDArray[Any], int | None]:
    """Whole numbers in as many bytes as the largest needs; if their differences need less, these, and the first number.

    So do the times of data points, which come nearly in their order.
    """
    if column.dtype != np.int64 or not len(column):
        return column, None
    kind, between = _kind(column), np.diff(column)
    if len(between) and _kind(between).itemsize < kind.itemsize:
        return between.astype(_kind(between)), int(column[0])
    return column.astype(kind, copy=False), None


def _kind(column: NDArray[Any]) -> np.dtype[Any]:
    low, high = column.min(), column.max()
    fitting = (kind for kind in _NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return np.dtype(next(fitting, np.int64))
