"""otlp_metrics_json's mapping in Python, record by record: what OtlpMetricsJson.java is compared with."""

from collections.abc import Callable, Iterator
from typing import Any

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
from connectors.decoders.records import Batch, Event, UnusableError
from tests.unit.connectors.decoders.json_values import double, every, integer, mapping, parse, text, time

Json = dict[str, Any]
Reading = tuple[float | None, Json | None]  # value, histogram

_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue", "arrayValue", "kvlistValue", "bytesValue")


def read(value: bytes | None) -> list[Batch]:
    """The batches of a record. Raises UnusableError."""
    request = parse(value)
    try:
        return [_batch(mapping(found)) for found in request["resourceMetrics"]]
    except (AttributeError, KeyError, TypeError, ValueError):  # JSON of another shape
        raise UnusableError("not_otlp") from None


def _batch(found: Json) -> Batch:
    resource = as_map(entries(mapping(found.get("resource")).get("attributes")))
    machine = machine_of(resource)
    identity = identity_of(resource, machine)
    metrics = [metric for scope in items(found, "scopeMetrics") for metric in items(scope, "metrics")]
    return Batch(machine, "metric", resource, [event for metric in metrics for event in _events(metric, identity)])


def items(parent: Json, field: str) -> Iterator[Json]:
    """The objects of a list; a null among them is an empty one."""
    items = parent.get(field)
    if items is None:
        return iter(())
    if not isinstance(items, list):
        raise TypeError(field)
    return map(mapping, items)


def _events(metric: Json, identity: tuple[Entry, ...]) -> Iterator[Event]:
    """All data points of a metric; it has one kind of data, but if it had two, no point would be lost."""
    name, unit = text(metric.get("name")) or "", text(metric.get("unit"))
    for field, (kind, reading) in _KINDS.items():
        data = metric.get(field)
        if data is None:
            continue
        common: Event = {"name": name, "type": kind}
        if unit:
            common["unit"] = unit
        if temporality := TEMPORALITIES.get(text(data.get("aggregationTemporality"))):
            common["temporality"] = temporality
        if kind == "sum":
            common["monotonic"] = _boolean(data.get("isMonotonic"))
        for point in items(data, "dataPoints"):
            series, attributes = labels(name, entries(point.get("attributes")), identity)
            value, histogram = reading(point)
            event = {
                "time_unix_nano": time(point.get("timeUnixNano")),
                "series": series,
                "value": None if _says_no_value(point) else value,
                "attributes": attributes,
                **common,
            }
            yield event if histogram is None else event | {"histogram": histogram}


def _says_no_value(point: Json) -> bool:
    return "flags" in point and text(point["flags"]) == "1"


def entries(attributes: Any) -> tuple[Entry, ...]:
    """OTLP's attributes as text, in their order."""
    if attributes is None:
        return ()
    if not isinstance(attributes, list):
        raise TypeError("attributes")
    try:
        return tuple([(a["key"] + "", a["value"]["stringValue"] + "") for a in attributes])
    except (KeyError, TypeError):  # not all of them are strings
        return tuple([(text(a.get("key")) or "", value_text(mapping(a.get("value")))) for a in attributes])


def value_text(value: Json) -> str | None:
    """An AnyValue as text: a string as it is, arrays and key-value lists in their JSON."""
    return next((text(value[field]) for field in _VALUES if value.get(field) is not None), None)


def _boolean(value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    raise TypeError("isMonotonic")


def _number(point: Json) -> Reading:
    value = point.get("asDouble")
    if type(value) is float:
        return value, None
    return double(point.get("asInt") if value is None else value), None


def _spread(point: Json, **buckets: Any) -> Reading:
    count, total = integer(point.get("count")), double(point.get("sum"))
    known = {"count": count, "sum": total, "min": double(point.get("min")), "max": double(point.get("max")), **buckets}
    return mean(count, total), {name: value for name, value in known.items() if value is not None}


def _histogram(point: Json) -> Reading:
    bounds, counts = point.get("explicitBounds"), point.get("bucketCounts")
    return _spread(point, bounds=every(double, bounds), counts=every(integer, counts))


def _exponential(point: Json) -> Reading:
    sides = [mapping(point.get(side)) for side in ("negative", "positive")]
    counts = [every(integer, side.get("bucketCounts")) or [] for side in sides]
    offsets = [double(side.get("offset")) or 0.0 for side in sides]
    zero = integer(point.get("zeroCount")) or 0
    return _spread(point, **exponential(double(point.get("scale")) or 0.0, zero, offsets, counts))


def _summary(point: Json) -> Reading:
    pairs = [(text(q.get("quantile")) or "0", text(q.get("value"))) for q in items(point, "quantileValues")]
    return _spread(point, quantiles=as_map(pairs))


_KINDS: dict[str, tuple[str, Callable[[Json], Reading]]] = {
    "gauge": ("gauge", _number),
    "sum": ("sum", _number),
    "histogram": ("histogram", _histogram),
    "exponentialHistogram": ("exponential_histogram", _exponential),
    "summary": ("summary", _summary),
}
