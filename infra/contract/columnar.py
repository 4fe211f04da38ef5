"""Tables within a record, as columns of equal length by name: null where a row has no value, and without the columns
that no row has a value in."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from infra.contract.schemas import EVENT, LABELS

Row = dict[str, Any]
Columns = dict[str, list[Any]]


def to_columns(rows: Iterable[Mapping[str, Any]]) -> Columns:
    """Columns from rows; those without any value are left out."""
    held = list(rows)
    columns = {name: [row.get(name) for row in held] for name in dict.fromkeys(chain.from_iterable(held))}
    return {name: column for name, column in columns.items() if column.count(None) < len(column)}


def to_rows(columns: Mapping[str, Sequence[Any]]) -> list[Row]:
    """Rows from columns, without nulls; of `events`, each row gets its labels. Raises ValueError if lengths differ."""
    if "labels" in columns:
        columns = _with_labels(**columns)
    rows = zip(*columns.values(), strict=True)
    return [{name: value for name, value in zip(columns, row, strict=True) if value is not None} for row in rows]


def _with_labels(labels: Sequence[int], **columns: Sequence[Any]) -> Columns:
    return {
        name: [column[row] for row in labels] if name in LABELS else list(column) for name, column in columns.items()
    }


def event_columns(events: Iterable[Mapping[str, Any]]) -> Columns:
    """The columns of events, in the order of a record of `events`: those that change with each scrape come first."""
    held = list(events)
    if len(held) == 1:  # as many collectors send them: four times as fast
        return {name: [value] for name in EVENT.names if (value := held[0].get(name)) is not None}
    columns = to_columns(held)
    return {name: columns[name] for name in EVENT.names if name in columns}
