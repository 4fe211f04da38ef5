"""One event a record, in our own JSON.

A metric: {"time_unix_nano", "machine", "name", "value", "unit", "attributes"}.
A log line: {"time_unix_nano", "machine", "body", "severity_text", "attributes"}.
Times are nanoseconds since the epoch, attributes an object of strings.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.sources import columns, otlp

_SCHEMA = (
    "STRUCT<time_unix_nano STRING, machine STRING, name STRING, value STRING, unit STRING, body STRING,"
    " severity_text STRING, attributes MAP<STRING, STRING>>"
)


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_line, no_events (neither a name nor a body), no_machine."""
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), _SCHEMA))
    line, error = F.col("parsed")["value"], columns.parse_error(F.col("parsed"), F.col("value"), "not_line")
    time, pairs = columns.time_unix_nano(line["time_unix_nano"]), F.map_entries(line["attributes"])
    attributes = F.coalesce(otlp.as_map(pairs), otlp.as_map(otlp.no_entries()))
    log = columns.event(
        time_unix_nano=time,
        type=F.lit("log"),
        attributes=attributes,
        severity_number=columns.severity_number(line["severity_text"]),
        severity_text=line["severity_text"],
        body=line["body"],
    )
    metric = columns.event(
        time_unix_nano=time,
        series=otlp.series(line["name"], F.coalesce(pairs, otlp.no_entries())),
        name=line["name"],
        value=line["value"].try_cast("double"),
        unit=line["unit"],
        type=F.lit("gauge"),
        attributes=attributes,
    )
    machine = columns.nonempty(line["machine"])
    return columns.batches(
        parsed,
        machine=machine,
        kind=F.when(line["body"].isNotNull(), "log").otherwise("metric"),
        resource=columns.known({"host.name": machine}),
        events=F.when(line["body"].isNotNull(), F.array(log)).when(line["name"].isNotNull(), F.array(metric)),
        error=error,
    )
