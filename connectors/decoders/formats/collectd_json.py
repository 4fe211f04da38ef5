"""collectd's write_kafka (and write_http) JSON: an array of value lists, each of one host.

The metric is `collectd.<plugin>.<type>`, and `.<dsname>` unless that is `value`; instances are attributes. A counter
and a derive are cumulative sums, an absolute is a delta; that holds with `StoreRates false`, while collectd's default
sends rates under the same types. A rate of the first interval is null: an event without a value.
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from connectors.decoders import columns, otlp
from connectors.decoders.base import Decoder

_SCHEMA = (
    "ARRAY<STRUCT<values ARRAY<STRING>, dstypes ARRAY<STRING>, dsnames ARRAY<STRING>, time STRING, host STRING,"
    " plugin STRING, plugin_instance STRING, type STRING, type_instance STRING>>"
)


def decode(df: DataFrame) -> DataFrame:
    """One row a value list; codes: not_json, not_collectd, no_events, no_machine."""
    parsed = df.withColumn("parsed", columns.parse(F.col("value"), _SCHEMA))
    error = columns.parse_error(F.col("parsed"), F.col("value"), "not_collectd")
    lists = F.when(F.col("error").isNull(), F.col("parsed")["value"])
    rows = columns.parts(parsed.withColumn("error", error), lists, *df.columns, "error")
    item = F.col("item")
    machine = columns.nonempty(item["host"])
    prepared = rows.select(
        "*",
        machine.alias("machine"),
        F.filter(F.array(*[_entry(item, key) for key in ("plugin_instance", "type_instance")]), _is_set).alias("pairs"),
        (item["time"].try_cast("decimal(38,9)").try_cast("decimal(28,9)") * 1_000_000_000).alias("time"),
    )
    events = F.transform(item["values"], lambda value, index: _event(item, value, index))
    return columns.batches(
        prepared,
        batch=F.col("batch"),
        machine=F.col("machine"),
        kind=F.lit("metric"),
        resource=columns.known({"host.name": F.col("machine")}),
        events=events,
        error=F.col("error"),
    )


def _entry(item: Column, key: str) -> Column:
    return F.struct(F.lit(key).alias("key"), columns.nonempty(item[key]).alias("value"))


def _is_set(pair: Column) -> Column:
    return pair["value"].isNotNull()


def _event(item: Column, value: Column, index: Column) -> Column:
    dsname, dstype = F.get(item["dsnames"], index), F.get(item["dstypes"], index)
    name = F.concat_ws(".", F.lit("collectd"), item["plugin"], item["type"], F.when(dsname != "value", dsname))
    is_sum = dstype.isin("counter", "derive", "absolute")
    return columns.event(
        time_unix_nano=columns.time_unix_nano(F.col("time")),
        series=otlp.series(name, F.col("pairs")),
        name=name,
        value=value.try_cast("double"),
        type=F.when(is_sum, "sum").otherwise("gauge"),
        temporality=F.when(dstype == "absolute", "delta").when(is_sum, "cumulative"),
        monotonic=F.when(is_sum, F.lit(True)),
        attributes=otlp.as_map(F.col("pairs")),
    )


DECODER = Decoder("collectd_json", decode)
