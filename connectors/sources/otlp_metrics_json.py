"""OTLP metrics as JSON (`ExportMetricsServiceRequest`): the format that carries nearly all data points.

It is decoded in the JVM, by OtlpMetricsJson.java: to take the bytes to Python and the events back costs more than the
decoding (docs/benchmarks.md). A test compares it with the same in Python, on mutated bytes.

The mapping is OTLP's JSON encoding: lowerCamelCase names, 64-bit integers as strings, enums as numbers; unknown fields
are ignored. A number's event has the number as its value. A histogram's, an exponential histogram's and a summary's
value is the mean of its observations, sum / count; 0 if there were none; null if the sum is missing. Their buckets are
in `histogram`. A data point that says "no recorded value" (flag 1) has the value null.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from connectors.sources.columns import LARGEST_BYTES, TOO_LARGE
from jobs.schemas import DECODED

_CLASS = "kappa.OtlpMetricsJson"
_FUNCTION = "kappa_otlp_metrics_json"
_FIELDS = ("batch", "machine", "resource", "json", "first_unix_nano", "last_unix_nano", "error", "count")
_ROWS = ArrayType(StructType([DECODED[name] for name in _FIELDS]))


def decode(df: DataFrame) -> DataFrame:
    """One row a resource; codes: not_json, not_otlp, no_events, no_machine."""
    if not df.sparkSession.catalog.functionExists(_FUNCTION):
        df.sparkSession.udf.registerJavaFunction(_FUNCTION, _CLASS, _ROWS)
    is_too_large = F.octet_length("value") > LARGEST_BYTES
    decoded = F.call_function(_FUNCTION, F.when(~is_too_large, F.col("value")))
    # Outer, though there is always a row: else Spark would ask for the rows twice, to filter out those without any.
    rows = df.select("*", F.explode_outer(decoded).alias("row"))
    error = F.when(is_too_large, TOO_LARGE).otherwise(F.col("row")["error"])
    known = {name: F.col("row")[name] for name in _FIELDS} | {"kind": F.lit("metric"), "error": error}
    fields = [known.get(name, F.lit(None)).cast(DECODED[name].dataType).alias(name) for name in DECODED.names]
    # Kafka's value stays only where nothing could be decoded, as with the decoders in Python.
    value = F.when(error.isNotNull(), F.col("value")).alias("value")
    kafka = [value if name == "value" else F.col(name) for name in df.columns]
    return rows.select(*kafka, *fields)
