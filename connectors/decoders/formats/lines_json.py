"""One event a record, in our own JSON.

A metric: {"time_unix_nano", "machine", "name", "value", "unit", "attributes"}.
A log line: {"time_unix_nano", "machine", "body", "severity_text", "attributes"}.
Times are nanoseconds since the epoch, attributes an object of strings.

Each record gives one row; codes: not_json, not_line, no_events (neither a name nor a body), no_machine.

It is decoded by LinesJson.java. A test compares it with the same in Python, on mutated bytes.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import StructField, StructType

from connectors.decoders import columns, jvm
from infra.contract.schemas import DECODED, EVENT

_FIELDS = ("batch", "kind", "machine", "resource", "json", "first_unix_nano", "last_unix_nano", "error", "count")
_LOG = StructType([EVENT[name] for name in ("time_unix_nano", "body", "severity_text", "attributes")])
_LENGTHS = (DECODED["series_bytes"], DECODED["unit_bytes"])
_ROW = StructType([*(DECODED[name] for name in _FIELDS), StructField("log", _LOG), *_LENGTHS])


def _log_event(row: Column) -> dict[str, Column]:
    log = row["log"]
    severity = columns.severity_number(log["severity_text"])
    event = columns.event(type=F.lit("log"), severity_number=severity, **{name: log[name] for name in _LOG.names})
    return {"events": F.when(log.isNotNull(), F.array(event))}


DECODER = jvm.decoder("lines_json", "LinesJson", _ROW, _log_event)
