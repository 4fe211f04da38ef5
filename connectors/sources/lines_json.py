"""One event a record, in our own JSON.

A metric: {"time_unix_nano", "machine", "name", "value", "unit", "attributes"}.
A log line: {"time_unix_nano", "machine", "body", "severity_text", "attributes"}.
Times are nanoseconds since the epoch, attributes an object of strings.
"""

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.sources import columns, otlp, records
from connectors.sources.columns import SEVERITY_NUMBERS
from connectors.sources.records import Batch, Event, Text, UnusableError

_SCHEMA = (
    "STRUCT<time_unix_nano STRING, machine STRING, name STRING, value STRING, unit STRING, body STRING,"
    " severity_text STRING, attributes MAP<STRING, STRING>>"
)


def decode(df: DataFrame) -> DataFrame:
    """One row a record; codes: not_json, not_line, no_events (neither a name nor a body), no_machine."""
    return records.decode(df, "metric", read)


def read(value: bytes | None) -> list[Batch]:
    """The one batch of a record. Raises UnusableError."""
    line = records.parse(value)
    try:
        return [_batch(line)]
    except (AttributeError, TypeError):  # JSON of another shape
        raise UnusableError("not_line") from None


def _batch(line: dict[str, Any]) -> Batch:
    machine, body = records.text(line.get("machine")), records.text(line.get("body"))
    attributes = {key: records.text(value) for key, value in records.mapping(line.get("attributes")).items()}
    common: Event = {"time_unix_nano": records.time(line.get("time_unix_nano"))}
    if body is not None:
        events = [common | _log(line, body, attributes)]
    else:
        events = [
            common | _metric(line, name, attributes) for name in [records.text(line.get("name"))] if name is not None
        ]
    machine = None if machine in ("", "-") else machine
    resource: dict[str, Text] = {} if machine is None else {"host.name": machine}
    return Batch(machine, "metric" if body is None else "log", resource, events)


def _metric(line: dict[str, Any], name: str, attributes: dict[str, Text]) -> Event:
    series, value = records.series(name, list(attributes.items())), records.double(line.get("value"))
    event = {"series": series, "name": name, "value": value, "type": "gauge", "attributes": attributes}
    unit = records.text(line.get("unit"))
    return event if unit is None else event | {"unit": unit}


def _log(line: dict[str, Any], body: str, attributes: dict[str, Text]) -> Event:
    severity = records.text(line.get("severity_text"))
    number = SEVERITY_NUMBERS.get((severity or "").upper())
    known = {"attributes": list(attributes.items()), "severity_number": number, "severity_text": severity}
    return {"type": "log", "body": body, **known}


def decode_builtin(df: DataFrame) -> DataFrame:
    """The same by Spark's expressions, for the real-time mode."""
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
