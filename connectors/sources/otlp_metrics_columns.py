"""OTLP metrics as JSON (`ExportMetricsServiceRequest`), built-in expressions only.

A number's event has the number as its value. A histogram's, an exponential histogram's and a summary's value is the
mean of its observations, sum / count; 0 if there were none; null if the sum is missing. Their buckets are in
`histogram`. A data point that says "no recorded value" (flag 1) has the value null.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from connectors.sources import columns, otlp
from jobs.schemas import EVENT

_POINT = f"attributes {otlp.ATTRIBUTES_SCHEMA}, timeUnixNano STRING, flags STRING"
_SPREAD = f"{_POINT}, count STRING, sum STRING, min STRING, max STRING"
_NUMBER = f"{_POINT}, asInt STRING, asDouble STRING"
_HISTOGRAM = f"{_SPREAD}, bucketCounts ARRAY<STRING>, explicitBounds ARRAY<STRING>"
_BUCKETS = "STRUCT<offset STRING, bucketCounts ARRAY<STRING>>"
_EXPONENTIAL = f"{_SPREAD}, scale STRING, zeroCount STRING, positive {_BUCKETS}, negative {_BUCKETS}"
_SUMMARY = f"{_SPREAD}, quantileValues ARRAY<STRUCT<quantile STRING, value STRING>>"


def _data(point: str) -> str:
    return f"STRUCT<dataPoints ARRAY<STRUCT<{point}>>, aggregationTemporality STRING, isMonotonic BOOLEAN>"


_METRIC = (
    f"STRUCT<name STRING, unit STRING, gauge {_data(_NUMBER)}, sum {_data(_NUMBER)}, histogram {_data(_HISTOGRAM)},"
    f" exponentialHistogram {_data(_EXPONENTIAL)}, summary {_data(_SUMMARY)}>"
)
_SCOPES = f"scopeMetrics ARRAY<STRUCT<metrics ARRAY<{_METRIC}>>>"

Reading = Callable[[Column], tuple[Column, Column]]


def decode(df: DataFrame) -> DataFrame:
    """One row a resource; codes: not_json, not_otlp, no_events, no_machine."""
    rows = otlp.resources(df, "resourceMetrics", _SCOPES)
    metrics = F.flatten(F.array_compact(F.col("item")["scopeMetrics"]["metrics"]))
    events = F.flatten(F.transform(metrics, _metric_events))
    return rows.withColumn("events", events).transform(otlp.batches, "metric")


def _metric_events(metric: Column) -> Column:
    """All data points of a metric; it has one kind of data, but if it had two, no point would be lost."""
    kinds = {
        "gauge": ("gauge", _number),
        "sum": ("sum", _number),
        "histogram": ("histogram", _histogram),
        "exponentialHistogram": ("exponential_histogram", _exponential),
        "summary": ("summary", _summary),
    }
    found = [_point_events(metric, metric[field], kind, reading) for field, (kind, reading) in kinds.items()]
    return F.flatten(F.array_compact(F.array(*found)))


def _point_events(metric: Column, data: Column, kind: str, reading: Reading) -> Column:
    """The events of one kind of data; first what is used twice is computed, then the event is built from it."""

    def read(point: Column) -> Column:
        value, histogram = reading(point)
        recorded = point["flags"].isNull() | ~point["flags"].isin("1")
        return F.struct(
            point["timeUnixNano"].try_cast("bigint").alias("time"),
            F.when(recorded, value).alias("value"),
            histogram.cast(EVENT["histogram"].dataType).alias("histogram"),
            otlp.entries(point["attributes"]).alias("entries"),
        )

    def build(point: Column) -> Column:
        name = F.coalesce(metric["name"], F.lit(""))
        return columns.event(
            time_unix_nano=columns.time_unix_nano(point["time"]),
            series=otlp.series(name, otlp.joined(point["entries"], F.col("identity"))),
            name=name,
            value=point["value"],
            unit=F.nullif(metric["unit"], F.lit("")),
            type=F.lit(kind),
            temporality=_temporality(data["aggregationTemporality"]),
            monotonic=F.coalesce(data["isMonotonic"], F.lit(False)) if kind == "sum" else None,
            attributes=otlp.as_map(point["entries"]),
            histogram=point["histogram"],
        )

    return F.transform(F.transform(data["dataPoints"], read), build)


def _temporality(number: Column) -> Column:
    return F.when(number == "2", "cumulative").when(number == "1", "delta")


def _number(point: Column) -> tuple[Column, Column]:
    return F.coalesce(point["asDouble"], point["asInt"]).try_cast("double"), F.lit(None)


def _mean(point: Column) -> Column:
    count, total = point["count"].try_cast("bigint"), point["sum"].try_cast("double")
    return F.when(count == 0, 0.0).otherwise(F.try_divide(total, count))


def _spread(point: Column, **buckets: Column) -> Column:
    """A struct of `jobs.schemas.HISTOGRAM`."""
    return F.struct(
        point["count"].try_cast("bigint").alias("count"),
        *[point[name].try_cast("double").alias(name) for name in ("sum", "min", "max")],
        *[buckets.get(name, F.lit(None)).alias(name) for name in ("bounds", "counts", "quantiles")],
    )


def _histogram(point: Column) -> tuple[Column, Column]:
    bounds, counts = point["explicitBounds"], point["bucketCounts"]
    return _mean(point), _spread(
        point, bounds=bounds.try_cast("array<double>"), counts=counts.try_cast("array<bigint>")
    )


def _exponential(point: Column) -> tuple[Column, Column]:
    """Bounds by OTLP's definition: bucket i of `positive` is (base^(offset+i), base^(offset+i+1)], base = 2^(2^-scale).

    `negative` mirrors it; the zero bucket takes all between the two.
    """
    negative, positive = _buckets(point["negative"]), _buckets(point["positive"])
    exponent = F.pow(F.lit(2.0), -F.coalesce(point["scale"].try_cast("double"), F.lit(0.0)))

    def lower(buckets: Column) -> Column:
        offset = F.coalesce(buckets["offset"].try_cast("double"), F.lit(0.0))
        largest = F.lit(1.7976931348623157e308)
        return F.transform(
            _buckets(buckets), lambda _, index: F.least(F.pow(F.lit(2.0), exponent * (offset + index)), largest)
        )

    below = F.transform(F.reverse(lower(point["negative"])), lambda bound: -bound)
    zero = F.array(F.coalesce(point["zeroCount"].try_cast("bigint"), F.lit(0)))
    counts = F.concat(F.reverse(negative), zero, positive)
    return _mean(point), _spread(point, bounds=F.concat(below, lower(point["positive"])), counts=counts)


def _buckets(buckets: Column) -> Column:
    return F.coalesce(buckets["bucketCounts"].try_cast("array<bigint>"), F.array().cast("array<bigint>"))


def _summary(point: Column) -> tuple[Column, Column]:
    pairs = F.transform(
        point["quantileValues"],
        lambda q: F.struct(F.coalesce(q["quantile"], F.lit("0")).alias("key"), q["value"].alias("value")),
    )
    return _mean(point), _spread(point, quantiles=otlp.as_map(pairs))
