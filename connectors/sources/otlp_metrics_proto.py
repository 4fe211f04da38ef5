"""OTLP metrics as protobuf (`ExportMetricsServiceRequest`); the same rows as `otlp_metrics_json`."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.metrics.v1.metrics_pb2 import (
    ExponentialHistogramDataPoint,
    HistogramDataPoint,
    Metric,
    NumberDataPoint,
    ResourceMetrics,
    SummaryDataPoint,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from pyspark.sql import DataFrame

from connectors.sources import otlp_arrow
from connectors.sources.otlp_arrow import Entry, Event

_NO_RECORDED_VALUE = 1
_TEMPORALITY = {1: "delta", 2: "cumulative"}


def decode(df: DataFrame) -> DataFrame:
    """One row a resource; codes: not_protobuf, no_events, no_machine."""
    return otlp_arrow.decode(df, "metric", ExportMetricsServiceRequest, _batches)


def _batches(request: ExportMetricsServiceRequest) -> Iterator[tuple[Resource, Callable[[list[Entry]], list[Event]]]]:
    for found in request.resource_metrics:
        yield found.resource, partial(_events, found)


def _events(found: ResourceMetrics, identity: list[Entry]) -> list[Event]:
    return [
        event for scope in found.scope_metrics for metric in scope.metrics for event in _metric_events(metric, identity)
    ]


def _metric_events(metric: Metric, identity: list[Entry]) -> Iterator[Event]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    common = {
        "name": metric.name,
        "unit": metric.unit or None,
        "type": kind,
        "temporality": _TEMPORALITY.get(getattr(data, "aggregation_temporality", 0)),
        "monotonic": data.is_monotonic if kind == "sum" else None,
    }
    for point in data.data_points:
        own = otlp_arrow.entries(point.attributes)
        yield {
            **common,
            "time_unix_nano": otlp_arrow.time(point.time_unix_nano),
            "series": otlp_arrow.series(metric.name, own + identity),
            "attributes": list(otlp_arrow.as_map(own).items()),
            **_READINGS[kind](point),
            **({"value": None} if point.flags & _NO_RECORDED_VALUE else {}),
        }


def _number(point: NumberDataPoint) -> dict[str, Any]:
    field = point.WhichOneof("value")
    return {"value": None if field is None else float(getattr(point, field))}


def _spread(point: Any, **buckets: Any) -> dict[str, Any]:
    optional = {name: _optional(point, name) for name in ("sum", "min", "max")}
    return {"value": _mean(point), "histogram": {"count": point.count, **optional, **buckets}}


def _optional(point: Any, name: str) -> float | None:
    field = point.DESCRIPTOR.fields_by_name.get(name)
    if field is None or (field.has_presence and not point.HasField(name)):
        return None
    return float(getattr(point, name))


def _mean(point: Any) -> float | None:
    if point.count == 0:
        return 0.0
    total = _optional(point, "sum")
    return None if total is None else total / point.count


def _histogram(point: HistogramDataPoint) -> dict[str, Any]:
    return _spread(point, bounds=list(point.explicit_bounds), counts=list(point.bucket_counts))


def _exponential(point: ExponentialHistogramDataPoint) -> dict[str, Any]:
    negative, positive = point.negative, point.positive
    exponent = otlp_arrow.power_of_two(-float(point.scale))

    def lower(buckets: ExponentialHistogramDataPoint.Buckets) -> list[float]:
        indices = range(buckets.offset, buckets.offset + len(buckets.bucket_counts))
        return [otlp_arrow.power_of_two(exponent * index) for index in indices]

    bounds = [-bound for bound in reversed(lower(negative))] + lower(positive)
    counts = [*reversed(negative.bucket_counts), point.zero_count, *positive.bucket_counts]
    return _spread(point, bounds=bounds, counts=counts)


def _summary(point: SummaryDataPoint) -> dict[str, Any]:
    quantiles = [(otlp_arrow.number_text(q.quantile), otlp_arrow.number_text(q.value)) for q in point.quantile_values]
    return _spread(point, quantiles=quantiles)


_READINGS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponential_histogram": _exponential,
    "summary": _summary,
}
