"""One event a record, in our own JSON.

A metric: {"time_unix_nano", "machine", "name", "value", "unit", "attributes"}.
A log line: {"time_unix_nano", "machine", "body", "severity_text", "attributes"}.
Times are nanoseconds since the epoch, attributes an object of strings.

It is decoded by LinesJson.java. A test compares it with the same in Python, on mutated bytes.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StringType, StructField, StructType

from connectors.sources import columns, jvm
from jobs.schemas import DECODED, STRINGS

_FIELDS = ("batch", "kind", "machine", "resource", "json", "first_unix_nano", "last_unix_nano", "error", "count")
_LOG = (
    StructField("time_unix_nano", LongType()),
    StructField("body", StringType()),
    StructField("severity_text", StringType()),
    StructField("attributes", STRINGS),
)
_ROW = StructType([*(DECODED[name] for name in _FIELDS), *_LOG])


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_line, no_events (neither a name nor a body), no_machine."""
    return jvm.decode(df, "LinesJson", _ROW, _made)


def _made(row: Column) -> dict[str, Column]:
    severity = {"severity_number": columns.severity_number(row["severity_text"])}
    log = columns.event(type=F.lit("log"), **severity, **{field.name: row[field.name] for field in _LOG})
    return {"events": F.when(row["body"].isNotNull(), F.array(log))}
