"""Builds OTLP requests as JSON objects, in the form in which an OpenTelemetry Collector writes them."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any, NamedTuple

CUMULATIVE = 2  # OTLP's AGGREGATION_TEMPORALITY_CUMULATIVE


class Instrument(NamedTuple):
    """The metric and attributes of a series. `type` is `gauge` or `sum`; a sum is cumulative."""

    name: str
    unit: str
    type: str = "gauge"
    monotonic: bool = False
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def series(self) -> str:
        """The name of the series in the chain: `name{key=value,...}`, keys sorted."""
        if not self.attributes:
            return self.name
        return f"{self.name}{{{','.join(f'{key}={value}' for key, value in sorted(self.attributes))}}}"


class LogLine(NamedTuple):
    """One log line; `severity_number` is OTLP's scale (9 INFO, 13 WARN, 17 ERROR)."""

    time_unix_nano: int
    body: str
    severity_text: str
    severity_number: int
    attributes: tuple[tuple[str, str], ...] = ()


def attributes(items: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """OTLP's list form of string attributes."""
    return [{"key": key, "value": {"stringValue": value}} for key, value in items]


def metrics(
    resource: Mapping[str, str],
    scope: str,
    points: Iterable[tuple[Instrument, int | float | str]],
    start_unix_nano: int,
    time_unix_nano: int | str,
) -> dict[str, Any]:
    """An ExportMetricsServiceRequest of one resource. A float becomes `asDouble`, anything else the string of `asInt`.

    Adjacent points with the same metric name share a metric, as in the Collector's output.
    """
    grouped = groupby(points, key=lambda point: (point[0].name, point[0].unit, point[0].type, point[0].monotonic))
    body = [_metric(*key, _data_points(members, start_unix_nano, time_unix_nano)) for key, members in grouped]
    scoped = {"scope": {"name": scope}, "metrics": body}
    return {"resourceMetrics": [{"resource": {"attributes": attributes(resource.items())}, "scopeMetrics": [scoped]}]}


def logs(resource: Mapping[str, str], scope: str, lines: Iterable[LogLine]) -> dict[str, Any]:
    """An ExportLogsServiceRequest with the log lines of one resource."""
    scoped = {"scope": {"name": scope}, "logRecords": [_log_record(line) for line in lines]}
    return {"resourceLogs": [{"resource": {"attributes": attributes(resource.items())}, "scopeLogs": [scoped]}]}


def _metric(name: str, unit: str, kind: str, monotonic: bool, points: Iterator[dict[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {"dataPoints": list(points)}
    if kind == "sum":
        data["aggregationTemporality"] = CUMULATIVE
    if monotonic:
        data["isMonotonic"] = True
    return {"name": name, "unit": unit, kind: data}


def _data_points(
    points: Iterable[tuple[Instrument, int | float | str]], start: int, time: int | str
) -> Iterator[dict[str, Any]]:
    for instrument, value in points:
        number = {"asDouble": value} if isinstance(value, float) else {"asInt": str(value)}
        yield {
            **({"attributes": attributes(instrument.attributes)} if instrument.attributes else {}),
            "startTimeUnixNano": str(start),
            "timeUnixNano": str(time),
            **number,
        }


def _log_record(line: LogLine) -> dict[str, Any]:
    return {
        "timeUnixNano": str(line.time_unix_nano),
        "observedTimeUnixNano": str(line.time_unix_nano),
        "severityNumber": line.severity_number,
        "severityText": line.severity_text,
        "body": {"stringValue": line.body},
        "attributes": attributes(line.attributes),
    }
