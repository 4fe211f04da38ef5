"""OTLP logs as protobuf (`ExportLogsServiceRequest`); the same rows as `otlp_logs_json`.

Each resource gives one row; codes: not_protobuf, no_events, no_machine.
"""

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs

from connectors.decoders import otlp_protobuf, records
from connectors.decoders.columns import SEVERITY_NUMBERS
from connectors.decoders.otlp_values import as_map, machine_of
from connectors.decoders.records import Batch, Event


def read(value: bytes | None) -> list[Batch]:
    """The batches of a record. Raises UnusableError."""
    return [_batch(found) for found in otlp_protobuf.parse(ExportLogsServiceRequest, value).resource_logs]


def _batch(found: ResourceLogs) -> Batch:
    resource = as_map(otlp_protobuf.entries(found.resource.attributes))
    events = [_event(record) for scope in found.scope_logs for record in scope.log_records]
    return Batch(machine_of(resource), "log", resource, events)


def _event(record: LogRecord) -> Event:
    name = record.severity_text
    return {
        "time_unix_nano": records.time(record.time_unix_nano) or records.time(record.observed_time_unix_nano),
        "type": "log",
        "attributes": list(as_map(otlp_protobuf.entries(record.attributes)).items()),
        "severity_number": record.severity_number or SEVERITY_NUMBERS.get(name.upper()),
        "severity_text": name if name not in ("", "-") else None,
        "body": otlp_protobuf.value_text(record.body),
    }


DECODER = records.decoder("otlp_logs_proto", "log", read)
