"""Packed state: a JSON header and numpy columns in one block of bytes. The same content gives the same bytes."""

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

_LENGTH = 8
_NARROW = (np.int8, np.int16, np.int32)


def pack(header: Any, columns: dict[str, NDArray[Any]]) -> bytes:
    """One-dimensional columns behind what JSON can hold."""
    narrow = [_narrow(column) for column in columns.values()]
    kinds = [(name, column.dtype.str) for name, column in columns.items()]
    layout = [(*kind, column.dtype.str, len(column)) for kind, column in zip(kinds, narrow, strict=True)]
    head = orjson.dumps([header, layout])
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *(column.tobytes() for column in narrow)])


def unpack(block: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """(header, columns); the columns are copies that may be written to."""
    end = _LENGTH + int.from_bytes(block[:_LENGTH], "little")
    header, layout = orjson.loads(block[_LENGTH:end])
    columns = {}
    for name, kind, narrow, length in layout:
        held = np.frombuffer(block, narrow, length, end)
        columns[name] = held.astype(kind)
        end += held.nbytes
    return header, columns


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """Numbers, counts and weights in as many bytes as the largest of them needs."""
    if column.dtype != np.int64 or not len(column):
        return column
    low, high = column.min(), column.max()
    fitting = (kind for kind in _NARROW if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max)
    return column.astype(next(fitting, np.int64), copy=False)
