"""Packed state: a JSON header and numpy columns in one block of bytes. The same content gives the same bytes."""

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

_LENGTH = 8
_NARROW = (np.int8, np.int16, np.int32)


def pack(header: Any, columns: dict[str, NDArray[Any]]) -> bytes:
    """One-dimensional columns behind what JSON can hold."""
    held = [_narrow(column) for column in columns.values()]
    kinds = [(name, column.dtype.str) for name, column in columns.items()]
    layout = [(*kind, one.dtype.str, len(one), first) for kind, (one, first) in zip(kinds, held, strict=True)]
    head = orjson.dumps([header, layout])
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *(one.tobytes() for one, _ in held)])


def unpack(block: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """(header, columns); the columns are copies that may be written to."""
    end = _LENGTH + int.from_bytes(block[:_LENGTH], "little")
    header, layout = orjson.loads(block[_LENGTH:end])
    columns = {}
    for name, kind, narrow, length, first in layout:
        held = np.frombuffer(block, narrow, length, end)
        end += held.nbytes
        columns[name] = held.astype(kind) if first is None else np.cumsum(np.insert(held.astype(kind), 0, first))
    return header, columns


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
