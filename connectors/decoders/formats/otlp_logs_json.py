"""OTLP logs as JSON (`ExportLogsServiceRequest`), built-in expressions only.

A line's time is `timeUnixNano`, or `observedTimeUnixNano` where the source knew none.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns, otlp
from connectors.decoders.base import Decoder

_RECORD = (
    "timeUnixNano STRING, observedTimeUnixNano STRING, severityNumber STRING, severityText STRING,"
    f" body {otlp.VALUE_SCHEMA}, attributes {otlp.ATTRIBUTES_SCHEMA}"
)
_SCOPES = f"scopeLogs ARRAY<STRUCT<logRecords ARRAY<STRUCT<{_RECORD}>>>>"


def decode(df: DataFrame) -> DataFrame:
    """One row a resource; codes: not_json, not_otlp, no_events, no_machine."""
    rows = otlp.resources(df, "resourceLogs", _SCOPES)
    records = F.flatten(F.array_compact(F.col("item")["scopeLogs"]["logRecords"]))
    return rows.withColumn("events", F.transform(records, _event)).transform(otlp.batches, "log")


def _event(record: Column) -> Column:
    number, name = record["severityNumber"].try_cast("int"), record["severityText"]
    return columns.event(
        time_unix_nano=F.coalesce(
            columns.time_unix_nano(record["timeUnixNano"]), columns.time_unix_nano(record["observedTimeUnixNano"])
        ),
        type=F.lit("log"),
        attributes=otlp.as_map(otlp.entries(record["attributes"])),
        severity_number=F.when(number > 0, number).otherwise(columns.severity_number(name)),
        severity_text=columns.nonempty(name),
        body=otlp.value_text(record["body"]),
    )


DECODER = Decoder("otlp_logs_json", decode)
