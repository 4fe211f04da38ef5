"""What OTLP's metrics and logs share as JSON: attributes, the machine that a resource is, and series.

The mapping is OTLP's JSON encoding of `opentelemetry-proto`: lowerCamelCase names, 64-bit integers as strings, enums as
numbers; unknown fields are ignored. All scalars are read as strings, so that one odd value costs one data point.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns
from connectors.decoders.identity import IDENTITIES, Identity

_VALUE_FIELDS = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")
VALUE_SCHEMA = f"STRUCT<{','.join(f'{field} STRING' for field in _VALUE_FIELDS)}>"
ATTRIBUTES_SCHEMA = f"ARRAY<STRUCT<key STRING, value {VALUE_SCHEMA}>>"


def resources(df: DataFrame, field: str, scopes_schema: str) -> DataFrame:
    """One row for each resource: `batch`, `item`, `machine` and `resource`, or `error`.

    `field` is the request's only one, `resourceLogs`, and the items' schema has `scopes_schema`.
    """
    item = f"STRUCT<resource STRUCT<attributes {ATTRIBUTES_SCHEMA}>, {scopes_schema}>"
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), f"STRUCT<{field} ARRAY<{item}>>"))
    found = F.col("parsed")["value"][field]
    error = columns.parse_error(F.col("parsed"), F.col("value"), "not_otlp")
    exploded = parsed.withColumn(
        "error", F.when(found.isNull() | error.isNotNull(), F.coalesce(error, F.lit("not_otlp")))
    )
    items = F.when(F.col("error").isNull(), found)
    rows = columns.parts(exploded, items, *df.columns, "error")
    return rows.withColumn("resource", as_map(entries(F.col("item")["resource"]["attributes"]))).withColumn(
        "machine", machine(F.col("resource"))
    )


def batches(df: DataFrame, kind: str) -> DataFrame:
    """The decoded rows of `resources` with their `events`."""
    named = {name: F.col(name) for name in ("batch", "machine", "resource", "events", "error")}
    return columns.batches(df, kind=F.lit(kind), **named)


def value_text(value: Column) -> Column:
    """An AnyValue as text: a string as it is, arrays and key-value lists in their JSON."""
    return F.coalesce(*[value[field] for field in _VALUE_FIELDS])


def entries(attributes: Column) -> Column:
    """OTLP's attributes as array<struct<key, value>> of strings, in their order; empty if there are none."""
    found = F.transform(
        attributes,
        lambda a: F.struct(F.coalesce(a["key"], F.lit("")).alias("key"), value_text(a["value"]).alias("value")),
    )
    return F.coalesce(found, F.array().cast("array<struct<key:string,value:string>>"))


def as_map(pairs: Column) -> Column:
    """Entries as a map; of a key that stands twice, the first counts."""
    keys = pairs["key"]
    firsts = F.filter(pairs, lambda pair, index: F.array_position(keys, pair["key"]) == index + 1)
    is_plain = F.size(F.array_distinct(keys)) == F.size(keys)
    return F.map_from_entries(F.when(is_plain, pairs).otherwise(firsts))


def machine(resource: Column) -> Column:
    """The machine that a resource map names (identity.py); null if it names none."""
    return F.coalesce(*[_name(resource, identity) for identity in IDENTITIES])


def _name(resource: Column, identity: Identity) -> Column:
    own = attribute(resource, *identity.keys)
    if not identity.within:
        return own
    return F.when(own.isNotNull(), F.concat_ws("/", *[attribute(resource, key) for key in identity.within], own))


def attribute(resource: Column, *keys: str) -> Column:
    """The first of these attributes that has a value; null if none has."""
    return F.coalesce(*[columns.nonempty(F.element_at(resource, key)) for key in keys])


def series(name: Column, pairs: Column) -> Column:
    """`name{key=value,...}`, sorted by key; the name alone if there are no entries."""
    texts = F.transform(F.sort_array(pairs), lambda pair: F.concat_ws("=", pair["key"], pair["value"]))
    # concat_ws, since concat works out its type anew for each row inside a lambda.
    labelled = F.concat_ws("", name, F.lit("{"), F.array_join(texts, ","), F.lit("}"))
    return F.when(F.size(pairs) == 0, name).otherwise(labelled)
