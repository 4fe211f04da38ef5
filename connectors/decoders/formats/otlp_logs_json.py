"""OTLP logs as JSON (`ExportLogsServiceRequest`).

Each resource gives one row; codes: not_json, not_otlp, no_events, no_machine.

It is decoded by OtlpLogsJson.java. A test compares it with the same in Python, on mutated bytes.

The mapping is OTLP's JSON encoding, as of `otlp_metrics_json`. A line's time is `timeUnixNano`, or
`observedTimeUnixNano` where the source knew none.
"""

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from connectors.decoders import jvm
from infra.contract.schemas import DECODED

_ROW = StructType([DECODED[name] for name in ("batch", "machine", "resource", "events", "error", "count")])

DECODER = jvm.decoder("otlp_logs_json", "OtlpLogsJson", _ROW, lambda _: {"kind": F.lit("log")})
