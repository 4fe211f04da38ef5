"""What OTLP's metrics and logs share as protobuf: records decoded in Arrow batches with `opentelemetry-proto`.

Gives the same rows as the JSON decoders of the same data.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pyarrow as pa
from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]
from google.protobuf.message import DecodeError, Message  # type: ignore[import-untyped]
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from connectors.sources.otlp import MACHINE_KEYS, SERIES_KEYS
from jobs.schemas import DECODED

Entry = tuple[str, str | None]
Event = dict[str, Any]
# One of the request's resources, and a function from its identity (see `series`) to its events.
Batches = Callable[[Any], Iterable[tuple[Resource, Callable[[list[Entry]], list[Event]]]]]

_LARGEST_TIME = 2**63 - 1


def decode(df: DataFrame, kind: str, request: type[Message], batches: Batches) -> DataFrame:
    """One row a resource; codes: not_protobuf, no_events, no_machine."""
    schema = StructType([*df.schema.fields, *DECODED.fields])
    arrow = to_arrow_schema(DECODED)

    def decode_batches(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in records:
            rows = [(i, row) for i, value in enumerate(record["value"]) for row in _rows(value.as_py())]
            kafka = record.take(pa.array([i for i, _ in rows], pa.int64()))
            decoded = pa.RecordBatch.from_pylist([row for _, row in rows], schema=arrow)
            yield pa.RecordBatch.from_arrays([*kafka.columns, *decoded.columns], [*kafka.schema.names, *arrow.names])

    def _rows(value: bytes | None) -> list[dict[str, Any]]:
        if value is None:
            return [{"kind": kind, "error": "not_protobuf"}]
        try:
            message = request.FromString(value)
        except DecodeError:
            return [{"kind": kind, "error": "not_protobuf"}]
        rows = [
            {"batch": batch, "kind": kind, **_batch(resource, events)}
            for batch, (resource, events) in enumerate(batches(message))
        ]
        return rows or [{"kind": kind, "error": "no_events"}]

    return df.mapInArrow(decode_batches, schema)


def _batch(resource: Resource, events: Callable[[list[Entry]], list[Event]]) -> dict[str, Any]:
    facts = as_map(entries(resource.attributes))
    machine = next((facts[key] for key in MACHINE_KEYS if facts.get(key) not in (None, "", "-")), None)
    found = events([(key, facts[key]) for key in SERIES_KEYS if facts.get(key) not in (None, machine)])
    row = {"machine": machine, "resource": list(facts.items())}
    if not found:
        return row | {"error": "no_events"}
    return row | {"error": "no_machine"} if machine is None else row | {"events": found}


def entries(pairs: Iterable[KeyValue]) -> list[Entry]:
    """OTLP's attributes as text, in their order."""
    return [(pair.key, value_text(pair.value)) for pair in pairs]


def as_map(pairs: list[Entry]) -> dict[str, str | None]:
    """Entries as a map; of a key that stands twice, the first counts."""
    return dict(reversed(pairs))


def value_text(value: AnyValue) -> str | None:
    """An AnyValue as text: a string as it is, arrays and key-value lists in their JSON; null if it's unset."""
    field = value.WhichOneof("value")
    if field == "string_value":
        return str(value.string_value)
    if field is None:
        return None
    if field == "bool_value":
        return str(value.bool_value).lower()
    if field == "double_value":
        return number_text(value.double_value)
    if field == "int_value":
        return str(value.int_value)
    whole = MessageToDict(value)
    return json.dumps(next(iter(whole.values())), separators=(",", ":"), ensure_ascii=False).strip('"')


def number_text(number: float) -> str:
    """The shortest JSON text of a double: 1 for 1.0."""
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


def series(name: str, pairs: list[Entry]) -> str:
    """`name{key=value,...}`, sorted by key; the name alone if there are no entries."""
    if not pairs:
        return name
    texts = (key if value is None else f"{key}={value}" for key, value in sorted(pairs, key=_order))
    return f"{name}{{{','.join(texts)}}}"


def _order(pair: Entry) -> tuple[str, bool, str]:
    key, value = pair
    return key, value is not None, value or ""


def time(unix_nano: int) -> int | None:
    """Null for 0, which means unknown, and for what isn't a positive 64-bit number."""
    return unix_nano if 0 < unix_nano <= _LARGEST_TIME else None


def power_of_two(exponent: float) -> float:
    """2^exponent, at most the largest double."""
    return math.exp2(exponent) if exponent < 1024 else 1.7976931348623157e308
