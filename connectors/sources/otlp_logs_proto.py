"""OTLP logs as protobuf (`ExportLogsServiceRequest`); the same rows as `otlp_logs_json`."""

from collections.abc import Callable, Iterator
from functools import partial

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from pyspark.sql import DataFrame

from connectors.sources import otlp_arrow
from connectors.sources.columns import SEVERITY_NUMBERS
from connectors.sources.otlp_arrow import Entry, Event


def decode(df: DataFrame) -> DataFrame:
    """One row a resource; codes: not_protobuf, no_events, no_machine."""
    return otlp_arrow.decode(df, "log", ExportLogsServiceRequest, _batches)


def _batches(request: ExportLogsServiceRequest) -> Iterator[tuple[Resource, Callable[[list[Entry]], list[Event]]]]:
    for found in request.resource_logs:
        yield found.resource, partial(_events, found)


def _events(found: ResourceLogs, _identity: list[Entry]) -> list[Event]:
    return [_event(record) for scope in found.scope_logs for record in scope.log_records]


def _event(record: LogRecord) -> Event:
    name = record.severity_text
    return {
        "time_unix_nano": otlp_arrow.time(record.time_unix_nano) or otlp_arrow.time(record.observed_time_unix_nano),
        "type": "log",
        "attributes": list(otlp_arrow.as_map(otlp_arrow.entries(record.attributes)).items()),
        "severity_number": record.severity_number or SEVERITY_NUMBERS.get(name.upper()),
        "severity_text": name if name not in ("", "-") else None,
        "body": otlp_arrow.value_text(record.body),
    }
