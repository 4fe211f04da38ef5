"""Whether a parsed record is what its schema says: anyone who may write to a topic can put anything there.

Fields that the schema lacks are let through: newer versions have more, and a document takes only what it knows. A list
of scalars, a column of a table, is judged by the set of its types, so that a check costs little beside the parsing.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructType,
)

_TYPES: dict[type[DataType], frozenset[type]] = {
    StringType: frozenset({str}),
    BinaryType: frozenset({str}),  # base64
    BooleanType: frozenset({bool}),
    IntegerType: frozenset({int}),
    LongType: frozenset({int}),
    DoubleType: frozenset({int, float}),
}
_NONE = frozenset({type(None)})
_MAPS = _NONE | {dict}


def check(record: Any, schema: StructType) -> None:
    """Raises TypeError, naming the field, unless the record is an object whose fields have the schema's types."""
    if not isinstance(record, dict):
        raise TypeError(f"an object is needed, not {type(record).__name__}")
    _check_fields(record, schema, "")


def require(record: Mapping[str, Any], *names: str) -> None:
    """Raises KeyError with the first of these fields that has no value."""
    for name in names:
        if record.get(name) is None:
            raise KeyError(name)


def _check_fields(fields: dict[str, Any], schema: StructType, path: str) -> None:
    for field in schema.fields:
        if (value := fields.get(field.name)) is not None:
            _check_value(value, field.dataType, f"{path}{field.name}")


def _check_value(value: Any, kind: DataType, path: str) -> None:
    match kind:
        case StructType():
            _check_types([value], {dict}, path)
            _check_fields(value, kind, f"{path}.")
        case MapType():
            _check_types([value], {dict}, path)
            _check_items(value.values(), kind.valueType, path)
        case ArrayType():
            _check_types([value], {list}, path)
            _check_items(value, kind.elementType, path)
        case _:
            _check_types([value], _TYPES[type(kind)], path)


def _check_items(values: Collection[Any], kind: DataType, path: str) -> None:
    if type(kind) in _TYPES:
        _check_types(values, _TYPES[type(kind)] | _NONE, path)
        return
    if isinstance(kind, MapType):  # all of them at once
        _check_types(values, _MAPS, path)
        _check_items([inner for value in values if value for inner in value.values()], kind.valueType, path)
        return
    for value in values:
        if value is not None:
            _check_value(value, kind, path)


def _check_types(values: Iterable[Any], wanted: Collection[type], path: str) -> None:
    if strange := {*map(type, values)}.difference(wanted):
        names = ", ".join(sorted(one.__name__ for one in strange))
        raise TypeError(f"{path}: {' or '.join(sorted(one.__name__ for one in wanted))} is needed, not {names}")
