"""Packed state: a JSON header and numpy columns in one block of bytes. The same content gives the same bytes."""

from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

_LENGTH = 8


def pack(header: Any, columns: dict[str, NDArray[Any]]) -> bytes:
    """One-dimensional columns behind what JSON can hold."""
    layout = [[name, column.dtype.str, len(column)] for name, column in columns.items()]
    head = orjson.dumps([header, layout])
    return b"".join([len(head).to_bytes(_LENGTH, "little"), head, *(c.tobytes() for c in columns.values())])


def unpack(block: bytes) -> tuple[Any, dict[str, NDArray[Any]]]:
    """(header, columns); the columns are copies that may be written to."""
    end = _LENGTH + int.from_bytes(block[:_LENGTH], "little")
    header, layout = orjson.loads(block[_LENGTH:end])
    columns = {}
    for name, kind, length in layout:
        columns[name] = np.frombuffer(block, kind, length, end).copy()
        end += columns[name].nbytes
    return header, columns
