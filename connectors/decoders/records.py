"""Decoders in Python, a record at a time over Arrow batches: for what Spark's expressions can't read, or read slowly.

A format gives `read(value)`, which returns the batches of one record's bytes or raises UnusableError. Metrics leave
Python as rendered JSON: to build nested Arrow columns from Python objects takes 6 µs a data point, to write it as JSON
0.3 µs, and JSON is what `events` holds.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from connectors.decoders.base import Decoder
from connectors.decoders.columns import LARGEST_BYTES, TOO_LARGE
from infra.contract.columnar import event_columns
from infra.contract.schemas import DECODED

Event = dict[str, Any]
Text = str | None

_LARGEST = 2**63 - 1
_NONFINITE = {math.inf: "Infinity", -math.inf: "-Infinity"}


class UnusableError(Exception):
    """A record of which nothing can be used; its text is the code."""


class Batch(NamedTuple):
    """One machine's events. A field of an event that is null may be absent."""

    machine: Text
    kind: str
    resource: dict[str, Text]
    events: Sequence[Event]


Read = Callable[[bytes | None], Sequence[Batch]]


def decoder(name: str, kind: str, read: Read) -> Decoder:
    """The decoder of the wire format `name` by `read`. `kind` is the kind that a record which can't be used has.

    Kafka's `value` stays only where nothing could be decoded: nobody needs it elsewhere, and it is most of the bytes.
    """
    return Decoder(name, lambda df: _decode(df, kind, read), needs_python=True)


def _decode(df: DataFrame, kind: str, read: Read) -> DataFrame:
    kafka = [StructField(field.name, field.dataType) for field in df.schema.fields]  # any of them may be null
    schema = StructType([*kafka, *DECODED.fields])
    arrow = to_arrow_schema(DECODED)

    def rows(value: bytes | None) -> list[dict[str, Any]]:
        if value is not None and len(value) > LARGEST_BYTES:
            return [{"kind": kind, "error": TOO_LARGE}]
        try:
            found = [_row(number, batch) for number, batch in enumerate(read(value))]
        except UnusableError as error:
            return [{"kind": kind, "error": str(error)}]
        return found or [{"kind": kind, "error": "no_events"}]

    def decode_batches(records: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for record in records:
            values = record["value"].to_numpy(zero_copy_only=False).tolist()
            of_record = [rows(value) for value in values]
            beside = [_value_beside(len(found), value) for found, value in zip(of_record, values, strict=True)]
            made = [(place, row) for place, found in enumerate(of_record) for row in found]
            originals = pa.array([beside[place] if "error" in row else None for place, row in made], pa.binary())
            number = record.schema.get_field_index("value")
            # Without the values first: each row that is taken has a copy of its record's.
            source = record.set_column(number, "value", pa.nulls(len(values), pa.binary()))
            source = source.take(pa.array([place for place, _ in made], pa.int64()))
            source = source.set_column(number, "value", originals)
            decoded = pa.RecordBatch.from_pylist([row for _, row in made], schema=arrow)
            yield pa.RecordBatch.from_arrays([*source.columns, *decoded.columns], [*source.schema.names, *arrow.names])

    return df.mapInArrow(decode_batches, schema)


def _value_beside(rows: int, value: bytes | None) -> bytes | None:
    """As columns.value_beside."""
    return value if rows <= 1 or rows * len(value or b"") <= LARGEST_BYTES else None


def _row(number: int, batch: Batch) -> dict[str, Any]:
    row = {"batch": number, "machine": batch.machine, "kind": batch.kind, "resource": list(batch.resource.items())}
    if not batch.events:
        return row | {"error": "no_events"}
    if batch.machine is None:
        return row | {"error": "no_machine", "count": len(batch.events)}
    return row | (render(batch.events) if batch.kind == "metric" else {"events": batch.events})


def render(events: Sequence[Event]) -> dict[str, Any]:
    """The fields `json`, `first_unix_nano`, `last_unix_nano`, `series_bytes` and `unit_bytes` of DECODED, of points.

    They stand in the order of their series: collectors change theirs from scrape to scrape, and what a scrape has in
    common with the one before shall be the same text.
    """
    columns = event_columns(sorted(events, key=itemgetter("series")))
    lengths = {"series_bytes": _longest(columns["series"]), "unit_bytes": _longest(columns.get("unit", ()))}
    try:
        times = columns["time_unix_nano"]
        if math.isfinite(sum(columns["value"])):
            within = {"first_unix_nano": min(times), "last_unix_nano": max(times)}
            return {"json": orjson.dumps(columns), **within, **lengths}
    except (KeyError, TypeError):  # a time or a value is None, or all are
        pass
    numbers = {name: list(map(_as_json_number, column)) for name, column in columns.items()}
    return {"json": orjson.dumps(numbers), **lengths}


def _longest(texts: Iterable[Text]) -> int:
    """The length of the longest of these texts in bytes of UTF-8; what repeats is measured once."""
    return max((len(text.encode()) for text in {*texts} if text), default=0)


def _as_json_number(value: Any) -> Any:
    """A value for JSON: NaN and infinities as the text that `from_json` reads as such, all else as it is."""
    is_known = not isinstance(value, float) or math.isfinite(value)
    return value if is_known else _NONFINITE.get(value, "NaN")


def integer(value: int) -> int | None:
    """An unsigned 64-bit integer as a signed one; null if it is too large for that."""
    return value if value <= _LARGEST else None


@lru_cache(maxsize=1024)  # the points of a scrape share their time
def time(value: int) -> int | None:
    """Nanoseconds since the epoch; null for 0, which means unknown, and for what exceeds a signed 64-bit number."""
    return integer(value) or None


def series(name: str, pairs: Sequence[tuple[str, Text]]) -> str:
    """`name{key=value,...}`, sorted by key; the name alone if there are no pairs."""
    if not pairs:
        return name
    texts = [key if value is None else f"{key}={value}" for key, value in sorted(pairs, key=_order)]
    return f"{name}{{{','.join(texts)}}}"


def _order(pair: tuple[str, Text]) -> tuple[str, bool, str]:
    key, value = pair
    return key, value is not None, value or ""
