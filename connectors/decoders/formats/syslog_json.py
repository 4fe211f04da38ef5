"""syslog as JSON: rsyslog's omkafka, template in docs/reference/collectors.md. An absent field is "-" or null."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns
from connectors.decoders.base import Decoder

_FIELDS = (
    "@timestamp",
    "host",
    "facility",
    "severity",
    "severity_num",
    "app",
    "procid",
    "msgid",
    "structured_data",
    "message",
)
_SCHEMA = f"STRUCT<{', '.join(f'`{field}` STRING' for field in _FIELDS)}>"


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_syslog, no_events (no message), no_machine."""
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), _SCHEMA))
    line, error = F.col("parsed")["value"], columns.parse_error(F.col("parsed"), F.col("value"), "not_syslog")
    number = columns.syslog_severity_number(line["severity_num"].try_cast("int"))
    return columns.syslog_batches(
        parsed,
        time=columns.rfc3339_unix_nano(line["@timestamp"]),
        host=line["host"],
        app=line["app"],
        severity_number=F.coalesce(number, columns.severity_number(line["severity"])),
        severity_text=columns.nonempty(line["severity"]),
        facility=line["facility"],
        procid=line["procid"],
        msgid=line["msgid"],
        structured_data=line["structured_data"],
        message=line["message"],
        error=error,
    )


DECODER = Decoder("syslog_json", decode)
