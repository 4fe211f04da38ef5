"""lines_json's format in Python, record by record: what LinesJson.java is compared with."""

from typing import Any

from connectors.decoders import records
from connectors.decoders.columns import SEVERITY_NUMBERS
from connectors.decoders.records import Batch, Event, Text, UnusableError
from tests.unit.connectors.decoders.json_values import double, mapping, parse, text, time


def read(value: bytes | None) -> list[Batch]:
    """The one batch of a record. Raises UnusableError."""
    line = parse(value)
    try:
        return [_batch(line)]
    except (AttributeError, TypeError):  # JSON of another shape
        raise UnusableError("not_line") from None


def _batch(line: dict[str, Any]) -> Batch:
    machine, body = text(line.get("machine")), text(line.get("body"))
    attributes = {key: text(value) for key, value in mapping(line.get("attributes")).items()}
    common: Event = {"time_unix_nano": time(line.get("time_unix_nano"))}
    if body is not None:
        events = [common | _log(line, body, attributes)]
    else:
        events = [common | _metric(line, name, attributes) for name in [text(line.get("name"))] if name is not None]
    machine = None if machine in ("", "-") else machine
    resource: dict[str, Text] = {} if machine is None else {"host.name": machine}
    return Batch(machine, "metric" if body is None else "log", resource, events)


def _metric(line: dict[str, Any], name: str, attributes: dict[str, Text]) -> Event:
    series, value = records.series(name, list(attributes.items())), double(line.get("value"))
    event = {"series": series, "name": name, "value": value, "type": "gauge", "attributes": attributes}
    unit = text(line.get("unit"))
    return event | {"unit": unit} if unit else event


def _log(line: dict[str, Any], body: str, attributes: dict[str, Text]) -> Event:
    severity = text(line.get("severity_text"))
    number = SEVERITY_NUMBERS.get((severity or "").upper())
    known = {"attributes": list(attributes.items()), "severity_number": number, "severity_text": severity}
    return {"type": "log", "body": body, **known}
