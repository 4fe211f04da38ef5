"""otlp_logs_json's mapping in Python, record by record: what OtlpLogsJson.java is compared with."""

from typing import Any

from connectors.decoders.columns import SEVERITY_NUMBERS
from connectors.decoders.otlp_values import as_map, machine_of
from connectors.decoders.records import Batch, Event, UnusableError
from tests.unit.connectors.decoders.json_values import integer, mapping, parse, text, time
from tests.unit.connectors.decoders.reference import entries, items, value_text

_LARGEST = 2**31 - 1


def read(value: bytes | None) -> list[Batch]:
    """The batches of a record. Raises UnusableError."""
    request = parse(value)
    try:
        return [_batch(mapping(found)) for found in request["resourceLogs"]]
    except (AttributeError, KeyError, TypeError, ValueError):  # JSON of another shape
        raise UnusableError("not_otlp") from None


def _batch(found: dict[str, Any]) -> Batch:
    resource = as_map(entries(mapping(found.get("resource")).get("attributes")))
    lines = [record for scope in items(found, "scopeLogs") for record in items(scope, "logRecords")]
    return Batch(machine_of(resource), "log", resource, [_event(record) for record in lines])


def _event(record: dict[str, Any]) -> Event:
    name, number = text(record.get("severityText")), integer(record.get("severityNumber"))
    is_given = number is not None and 0 < number <= _LARGEST
    return {
        "time_unix_nano": time(record.get("timeUnixNano")) or time(record.get("observedTimeUnixNano")),
        "type": "log",
        "attributes": list(as_map(entries(record.get("attributes"))).items()),
        "severity_number": number if is_given else SEVERITY_NUMBERS.get((name or "").upper()),
        "severity_text": None if name in ("", "-") else name,
        "body": value_text(mapping(record.get("body"))),
    }
