"""Records of each telemetry format about one machine; each name in them can be as long as a case wants."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

NANO = 1_000_000_000


@dataclass(frozen=True)
class Sample:
    """What a record says: `series` data points or log lines of a machine at `time_unix_nano`."""

    machine: str
    time_unix_nano: int
    name: str = "probe"
    unit: str = "1"
    attributes: Mapping[str, str] = field(default_factory=dict)
    body: str = "probe answered"
    series: int = 1

    @property
    def names(self) -> list[str]:
        """The name of each of its series."""
        return [self.name] if self.series == 1 else [f"{self.name}.{number}" for number in range(self.series)]


def _attributes(attributes: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]


def _otlp_metrics(sample: Sample) -> dict[str, Any]:
    point = {
        "timeUnixNano": str(sample.time_unix_nano),
        "asDouble": 1.5,
        "attributes": _attributes(sample.attributes),
    }
    metrics = [{"name": name, "unit": sample.unit, "gauge": {"dataPoints": [point]}} for name in sample.names]
    resource = {"attributes": _attributes({"host.name": sample.machine})}
    return {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"metrics": metrics}]}]}


def _otlp_logs(sample: Sample) -> dict[str, Any]:
    line = {
        "timeUnixNano": str(sample.time_unix_nano),
        "severityText": sample.unit,
        "body": {"stringValue": sample.body},
        "attributes": _attributes(sample.attributes),
    }
    resource = {"attributes": _attributes({"host.name": sample.machine, "service.name": sample.name})}
    return {"resourceLogs": [{"resource": resource, "scopeLogs": [{"logRecords": [line] * sample.series}]}]}


def _collectd(sample: Sample) -> bytes:
    value = {"values": [1.5], "dstypes": ["gauge"], "dsnames": ["value"], "interval": 5.0, "type": sample.unit}
    place = {"host": sample.machine, "time": sample.time_unix_nano / NANO, "plugin_instance": ""}
    instance = "".join(sample.attributes.values())
    return _json([value | place | {"plugin": name, "type_instance": instance} for name in sample.names])


def _syslog_json(sample: Sample) -> bytes:
    structured = " ".join(f'{key}="{value}"' for key, value in sample.attributes.items())
    return _json(
        {
            "@timestamp": _iso(sample),
            "received_at": _iso(sample),
            "host": sample.machine,
            "facility": "daemon",
            "severity": sample.unit,
            "severity_num": 4,
            "app": sample.name,
            "procid": "1",
            "msgid": "-",
            "structured_data": f"[probe@1 {structured}]" if structured else "-",
            "message": sample.body,
        }
    )


def _syslog_line(sample: Sample) -> bytes:
    structured = " ".join(f'{key}="{value}"' for key, value in sample.attributes.items())
    data = f"[probe@1 {structured}]" if structured else "-"
    return f"<28>1 {_iso(sample)} {sample.machine} {sample.name} 1 - {data} {sample.body}".encode()


def _line(sample: Sample) -> bytes:
    place = {"time_unix_nano": sample.time_unix_nano, "machine": sample.machine, "attributes": dict(sample.attributes)}
    return _json(place | {"name": sample.name, "value": 1.5, "unit": sample.unit})


def _iso(sample: Sample) -> str:
    return datetime.fromtimestamp(sample.time_unix_nano // 1000 / 1e6, UTC).isoformat(timespec="microseconds")


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


# By wire format: writes a sample as one record's value.
WRITERS: dict[str, Callable[[Sample], bytes]] = {
    "otlp_metrics_json": lambda sample: _json(_otlp_metrics(sample)),
    "otlp_logs_json": lambda sample: _json(_otlp_logs(sample)),
    "otlp_metrics_proto": lambda sample: ParseDict(
        _otlp_metrics(sample), ExportMetricsServiceRequest()
    ).SerializeToString(),
    "otlp_logs_proto": lambda sample: ParseDict(_otlp_logs(sample), ExportLogsServiceRequest()).SerializeToString(),
    "collectd_json": _collectd,
    "syslog_json": _syslog_json,
    "syslog_rfc5424": _syslog_line,
    "lines_json": _line,
}
# Formats whose record holds as many data points or lines as its sender likes.
MANY = frozenset({"otlp_metrics_json", "otlp_logs_json", "otlp_metrics_proto", "otlp_logs_proto", "collectd_json"})
# Formats of log lines; the others have data points.
LINES = frozenset({"otlp_logs_json", "otlp_logs_proto", "syslog_json", "syslog_rfc5424"})
