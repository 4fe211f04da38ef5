"""Column expressions that the decoders share: strict JSON, times, numbers, severities and the output row."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, StructType

from infra.contract.schemas import DECODED, EVENT

KAFKA = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
# A larger record isn't decoded: expressions hold a dozen copies of a value, and a job has little memory.
LARGEST_BYTES = 4_000_000
TOO_LARGE = "too_large"
_BILLION = 1_000_000_000
_RFC3339 = r"^(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(?:\.(\d{1,9})\d*)?([Zz]|[+-]\d\d:\d\d)$"

# OpenTelemetry's log data model, appendix B: syslog's severities on OTLP's scale, and OTLP's own short names.
SYSLOG_SEVERITIES = (
    ("emerg", 21),
    ("alert", 19),
    ("crit", 18),
    ("err", 17),
    ("warning", 13),
    ("notice", 10),
    ("info", 9),
    ("debug", 5),
)
SEVERITY_NUMBERS = {
    **{name.upper(): number for name, number in SYSLOG_SEVERITIES},
    "TRACE": 1,
    "INFORMATIONAL": 9,
    "WARN": 13,
    "ERROR": 17,
    "CRITICAL": 18,
    "PANIC": 21,
    "EMERGENCY": 21,
    "FATAL": 21,
}


def text(value: Column) -> Column:
    """Bytes as a string; bytes that aren't UTF-8 become U+FFFD. Null if there are more than LARGEST_BYTES."""
    return F.make_valid_utf8(F.when(F.octet_length(value) <= LARGEST_BYTES, value).cast("string"))


def parse(value: Column, schema: str) -> Column:
    """A JSON value parsed strictly: struct<value, error>, where `error` is null or `not_json` or `not_expected`.

    `from_json` alone reads the first JSON value, drops what follows, and keeps a part of what doesn't fit the schema.
    The wrapped value can't: `end` is missing if the value closed early, `_corrupt` is set if any part didn't fit.
    """
    body = text(value)
    wrapped = F.concat(F.lit('{"value":'), body, F.lit(',"end":true}'))
    options = {"columnNameOfCorruptRecord": "_corrupt", "allowSingleQuotes": "false"}
    return F.from_json(wrapped, f"value {schema}, end BOOLEAN, _corrupt STRING", options)


def parse_error(parsed: Column, value: Column, unexpected: str) -> Column:
    """Null if `parse` understood all of the value, else `not_json`, or `unexpected` for JSON of another shape."""
    understood = parsed["_corrupt"].isNull() & parsed["end"] & parsed["value"].isNotNull()
    is_json = F.try_parse_json(text(value)).isNotNull()
    return F.when(understood, F.lit(None)).when(is_json, unexpected).otherwise("not_json")


def parts(df: DataFrame, items: Column, *names: str) -> DataFrame:
    """One row for each of `items`, the parts of a record: `batch`, its number, and `item`, beside the columns `names`.

    A record that has none is one row, in which both are null.
    """
    # Of its own before the rows are made: each of them has a copy of all columns.
    kept = df.withColumn("value", value_beside(F.size(items)))
    return kept.select(*names, F.posexplode_outer(items).alias("batch", "item"))


def value_beside(rows: Column) -> Column:
    """Kafka's `value` for a record of which so many rows are made; null if its copies were larger than LARGEST_BYTES.

    A dead letter without it says where the record stands.
    """
    is_one = F.coalesce(rows <= 1, F.lit(True))
    copies = rows.cast("bigint") * F.octet_length("value")
    return F.when(is_one | (copies <= LARGEST_BYTES), F.col("value"))


def time_unix_nano(nanoseconds: Column) -> Column:
    """Nanoseconds as digits or an integer; null unless it's a positive 64-bit number (0 means unknown in OTLP)."""
    number = nanoseconds.try_cast("bigint")
    return F.when(number > 0, number)


def rfc3339_unix_nano(timestamp: Column) -> Column:
    """RFC 3339 text to nanoseconds, all nine digits kept; null if it's no such time or has no offset."""
    part = [F.regexp_extract(timestamp, _RFC3339, group) for group in range(5)]
    seconds = F.unix_seconds(F.concat(part[1], F.lit("T"), part[2], F.upper(part[4])).try_cast("timestamp"))
    nanoseconds = F.rpad(part[3], 9, "0").try_cast("bigint")
    return time_unix_nano(F.try_add(F.try_multiply(seconds, F.lit(_BILLION)), nanoseconds))


def severity_number(severity: Column) -> Column:
    """A severity's name, of any case, on OTLP's scale (1 to 24); null if unknown."""
    names = F.create_map(*[F.lit(item) for pair in SEVERITY_NUMBERS.items() for item in pair])
    return F.element_at(names, F.upper(severity))


def syslog_severity_number(code: Column) -> Column:
    """syslog's severity code (0 emergency to 7 debug) on OTLP's scale; null if unknown."""
    return F.get(F.array(*[F.lit(number) for _, number in SYSLOG_SEVERITIES]), code)


def nonempty(value: Column) -> Column:
    """Null for an empty string, and for "-", syslog's way to write an absent field."""
    return F.when(~value.isin("", "-"), value)


def known(values: dict[str, Column]) -> Column:
    """A map of those values that aren't null."""
    entries = F.array(*[F.struct(F.lit(name).alias("key"), value.alias("value")) for name, value in values.items()])
    return F.map_from_entries(F.filter(entries, lambda entry: entry["value"].isNotNull()))


def event(**fields: Column | None) -> Column:
    """A struct of `infra.contract.schemas.EVENT`; what isn't given is null."""
    return F.struct(*[_typed(EVENT, name, fields.get(name)) for name in EVENT.names])


def event_rows(columns: Column) -> Column:
    """Events in columns as an array of `infra.contract.schemas.EVENT`; empty if they have none."""
    # Arrays that are shorter than the longest are filled up with null.
    found = [F.coalesce(columns[field.name], F.array().cast(ArrayType(field.dataType))) for field in EVENT.fields]
    return F.arrays_zip(*found).cast(ArrayType(EVENT))


def event_columns(events: Column) -> Column:
    """The inverse: null for a field that no event has."""
    return F.struct(*[F.when(F.exists(events[name], F.isnotnull), events[name]).alias(name) for name in EVENT.names])


def syslog_batches(df: DataFrame, **line: Column) -> DataFrame:
    """One row a syslog line; names follow OpenTelemetry's mapping of RFC 5424 (log data model, appendix A)."""
    machine, message = nonempty(line["host"]), line["message"]
    attributes = {f"syslog.{key}": nonempty(line[key]) for key in ("facility", "procid", "msgid", "structured_data")}
    found = event(
        time_unix_nano=line["time"],
        type=F.lit("log"),
        attributes=known(attributes),
        severity_number=line["severity_number"],
        severity_text=line["severity_text"],
        body=message,
    )
    return batches(
        df,
        machine=machine,
        kind=F.lit("log"),
        resource=known({"host.name": machine, "service.name": nonempty(line["app"])}),
        events=F.when(message.isNotNull(), F.array(found)),
        error=line["error"],
    )


def batches(df: DataFrame, **decoded: Column) -> DataFrame:
    """The Kafka source's columns and those of `infra.contract.schemas.DECODED`; what isn't given is null.

    `error` may be given as the record's own; a batch without events or machine gets `no_events` or `no_machine`, and a
    record of more than LARGEST_BYTES `too_large`.
    """
    fields: dict[str, Column | None] = {**dict.fromkeys(DECODED.names), "batch": F.lit(0), **decoded}
    kafka = [name for name in df.columns if name in KAFKA]
    rows = df.select(*kafka, *[_typed(DECODED, name, fields[name]) for name in DECODED.names])
    error = (
        F.when(F.octet_length("value") > LARGEST_BYTES, TOO_LARGE)
        .when(F.col("error").isNotNull(), F.col("error"))
        .when(F.coalesce(F.size("events"), F.lit(0)) == 0, "no_events")
        .when(F.col("machine").isNull(), "no_machine")
    )
    unusable = F.when(F.col("error") == "no_machine", F.size("events").cast("bigint"))
    judged = rows.withColumn("error", error).withColumn("count", unusable)
    return judged.withColumn("events", F.when(F.col("error").isNull(), F.col("events")))


def _typed(schema: StructType, name: str, value: Column | None) -> Column:
    return (F.lit(None) if value is None else value).cast(schema[name].dataType).alias(name)
