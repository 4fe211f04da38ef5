"""OTLP metrics as protobuf (`ExportMetricsServiceRequest`); the same rows as `otlp_metrics_json`.

Each resource gives one row; codes: not_protobuf, no_events, no_machine.
"""

from collections.abc import Callable, Iterator
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

from connectors.decoders import otlp_protobuf, records
from connectors.decoders.otlp_values import (
    TEMPORALITIES,
    Entry,
    as_map,
    exponential,
    identity_of,
    labels,
    machine_of,
    mean,
)
from connectors.decoders.records import Batch, Event

Reading = tuple[float | None, dict[str, Any] | None]  # value, histogram
_NO_RECORDED_VALUE = 1


def read(value: bytes | None) -> list[Batch]:
    """The batches of a record. Raises UnusableError."""
    return [_batch(found) for found in otlp_protobuf.parse(ExportMetricsServiceRequest, value).resource_metrics]


def _batch(found: ResourceMetrics) -> Batch:
    resource = as_map(otlp_protobuf.entries(found.resource.attributes))
    machine = machine_of(resource)
    identity = identity_of(resource, machine)
    metrics = [metric for scope in found.scope_metrics for metric in scope.metrics]
    return Batch(machine, "metric", resource, [event for metric in metrics for event in _events(metric, identity)])


def _events(metric: Metric, identity: tuple[Entry, ...]) -> Iterator[Event]:
    kind = metric.WhichOneof("data")
    if kind is None:
        return
    data = getattr(metric, kind)
    common: Event = {"name": metric.name, "type": kind}
    if metric.unit:
        common["unit"] = metric.unit
    if temporality := TEMPORALITIES.get(str(getattr(data, "aggregation_temporality", 0))):
        common["temporality"] = temporality
    if kind == "sum":
        common["monotonic"] = data.is_monotonic
    for point in data.data_points:
        series, attributes = labels(metric.name, otlp_protobuf.entries(point.attributes), identity)
        value, histogram = _READINGS[kind](point)
        event = {
            "time_unix_nano": records.time(point.time_unix_nano),
            "series": series,
            "value": None if point.flags & _NO_RECORDED_VALUE else value,
            "attributes": attributes,
            **common,
        }
        yield event if histogram is None else event | {"histogram": histogram}


def _number(point: NumberDataPoint) -> Reading:
    field = point.WhichOneof("value")
    return None if field is None else float(getattr(point, field)), None


def _spread(point: Any, **buckets: Any) -> Reading:
    count, optional = records.integer(point.count), {name: _optional(point, name) for name in ("sum", "min", "max")}
    known = {"count": count, **optional, **buckets}
    return mean(count, optional["sum"]), {name: value for name, value in known.items() if value is not None}


def _optional(point: Any, name: str) -> float | None:
    field = point.DESCRIPTOR.fields_by_name.get(name)
    if field is None or (field.has_presence and not point.HasField(name)):
        return None
    return float(getattr(point, name))


def _counts(buckets: Any) -> list[int] | None:
    """All of the counts or none, as a histogram without one of its buckets says nothing."""
    counts = list(buckets.bucket_counts)
    return counts if all(records.integer(count) is not None for count in counts) else None


def _histogram(point: HistogramDataPoint) -> Reading:
    return _spread(point, bounds=list(point.explicit_bounds), counts=_counts(point))


def _exponential(point: ExponentialHistogramDataPoint) -> Reading:
    sides = (point.negative, point.positive)
    counts = [_counts(side) or [] for side in sides]
    return _spread(point, **exponential(float(point.scale), point.zero_count, [side.offset for side in sides], counts))


def _summary(point: SummaryDataPoint) -> Reading:
    quantiles = [
        (otlp_protobuf.number_text(q.quantile), otlp_protobuf.number_text(q.value)) for q in point.quantile_values
    ]
    return _spread(point, quantiles=as_map(quantiles))


_READINGS: dict[str, Callable[[Any], Reading]] = {
    "gauge": _number,
    "sum": _number,
    "histogram": _histogram,
    "exponential_histogram": _exponential,
    "summary": _summary,
}


DECODER = records.decoder("otlp_metrics_proto", "metric", read)
