"""OTLP metrics as JSON (`ExportMetricsServiceRequest`): the format that carries nearly all data points.

Each resource gives one row; codes: not_json, not_otlp, no_events, no_machine.

It is decoded by OtlpMetricsJson.java. A test compares it with the same in Python, on mutated bytes.

The mapping is OTLP's JSON encoding: lowerCamelCase names, 64-bit integers as strings, enums as numbers; unknown fields
are ignored. A number's event has the number as its value. A histogram's, an exponential histogram's and a summary's
value is the mean of its observations, sum / count; 0 if there were none; null if the sum is missing. Their buckets are
in `histogram`. A data point that says "no recorded value" (flag 1) has the value null.
"""

from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from connectors.decoders import jvm
from infra.contract.schemas import DECODED

_FIELDS = ("batch", "machine", "resource", "json", "first_unix_nano", "last_unix_nano", "error", "count")
_ROW = StructType([DECODED[name] for name in (*_FIELDS, "series_bytes", "unit_bytes")])

DECODER = jvm.decoder("otlp_metrics_json", "OtlpMetricsJson", _ROW, lambda _: {"kind": F.lit("metric")})
