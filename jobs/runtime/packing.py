"""Packed state: JSON values and numpy columns in one block of bytes. The same content gives the same bytes.

A block consists of parts, a value or a column each, so that what has not changed between two batches need not be
written again.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

Header = dict[str, Any]
Columns = dict[str, NDArray[Any]]

HEAD = "head"  # the part that says which others there are
_LENGTH = 8
_NARROW = (np.int8, np.int16, np.int32)


def pack(header: Header, columns: Columns) -> bytes:
    """One-dimensional columns behind values that JSON can hold."""
    values = {name: orjson.dumps(value) for name, value in header.items()}
    held = {name: _narrow(column) for name, column in columns.items()}
    kinds = {name: column.dtype.str for name, column in columns.items()}
    layout = [(name, kinds[name], one.dtype.str, len(one), first) for name, (one, first) in held.items()]
    head = orjson.dumps([[(name, len(value)) for name, value in values.items()], layout])
    parts = [*values.values(), *(one.tobytes() for one, _ in held.values())]
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *parts])


def unpack(block: bytes) -> tuple[Header, Columns]:
    """(header, columns); the columns are copies that may be written to."""
    values, layout = _head(block)
    at = places(block)
    header = {name: orjson.loads(block[at[f"value/{name}"]]) for name, _ in values}
    columns = {}
    for name, kind, narrow, length, first in layout:
        held = np.frombuffer(block, narrow, length, at[f"column/{name}"].start).astype(kind)
        columns[name] = held if first is None else np.cumsum(np.insert(held, 0, first))
    return header, columns


def places(block: bytes) -> dict[str, slice]:
    """Where the parts of a block are, by name and in order."""
    values, layout = _head(block)
    sizes = {f"value/{name}": length for name, length in values}
    sizes |= {f"column/{name}": length * np.dtype(narrow).itemsize for name, _, narrow, length, _ in layout}
    end = _LENGTH + int.from_bytes(block[:_LENGTH], "little")
    found = {HEAD: slice(0, end)}
    for name, size in sizes.items():
        found[name] = slice(end, end + size)
        end += size
    return found


def joined(parts: Mapping[str, bytes]) -> bytes:
    """A block from all its parts, in whatever order."""
    return b"".join(parts[name] for name in places(parts[HEAD]))


def _head(block: bytes) -> Any:
    return orjson.loads(block[_LENGTH : _LENGTH + int.from_bytes(block[:_LENGTH], "little")])


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
