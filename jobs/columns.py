"""A record's table as JSON: columns of equal length by name. Null where a row has no such value; a column that no row
has is absent."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Row = dict[str, Any]


def to_columns(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """Rows as columns."""
    held = list(rows)
    names = dict.fromkeys(name for row in held for name in row)
    return {name: [row.get(name) for row in held] for name in names}


def to_rows(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """The inverse of `to_columns`. Raises ValueError if the columns differ in length."""
    rows = zip(*columns.values(), strict=True)
    return [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]
