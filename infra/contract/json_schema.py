"""Converts the Spark schema of a record to JSON Schema, for consumers that don't use Spark."""

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

DIALECT = "https://json-schema.org/draft/2020-12/schema"

SCALARS: dict[type[DataType], dict[str, Any]] = {
    StringType: {"type": "string"},
    BooleanType: {"type": "boolean"},
    DoubleType: {"type": "number"},
    IntegerType: {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
    LongType: {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1},
    BinaryType: {"type": "string", "contentEncoding": "base64"},
}


def json_schema(name: str, record: StructType) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a record. A field that is null is absent; unknown fields are refused.

    Null is allowed in lists of scalars, and in the columns of a table where a row has no value.
    """
    return {"$schema": DIALECT, "title": name, **_node(record)}


def _node(kind: DataType, *, is_column: bool = False) -> dict[str, Any]:
    match kind:
        case StructType():
            is_table = all(isinstance(field.dataType, ArrayType) for field in kind.fields)
            properties = {field.name: _node(field.dataType, is_column=is_table) for field in kind.fields}
            return {"type": "object", "properties": properties, "additionalProperties": False}
        case MapType():
            return {"type": "object", "additionalProperties": _node(kind.valueType)}
        case ArrayType(elementType=StructType()) if not is_column:
            return {"type": "array", "items": _node(kind.elementType)}
        case ArrayType():
            return {"type": "array", "items": {"anyOf": [_node(kind.elementType), {"type": "null"}]}}
        case _:
            return dict(SCALARS[type(kind)])
