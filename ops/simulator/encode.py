"""Encodes simulated telemetry in the simulator's two wire formats.

`otlp`: a record is one machine's scrape (or its log lines since the last) as OTLP JSON, as an OpenTelemetry Collector
writes it, to telemetry.otlp.metrics and telemetry.otlp.logs.

`lines`: a record is one event, to telemetry.lines. A metric has exactly the fields
`{"time_unix_nano": int, "machine": str, "name": str, "value": number, "unit": str, "attributes": {str: str}}`,
a log line `{"time_unix_nano": int, "machine": str, "body": str, "severity_text": str, "attributes": {str: str}}`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import orjson

from connectors import otlp
from connectors.otlp import Instrument
from ops.simulator.cloud import Machine
from ops.simulator.logs import SimulatedLine
from ops.simulator.signals import GAUGES, Floats

METRICS_TOPIC = "telemetry.otlp.metrics"
LOGS_TOPIC = "telemetry.otlp.logs"
LINES_TOPIC = "telemetry.lines"
INVENTORY_TOPIC = "inventory"
TOPICS = {"otlp": (METRICS_TOPIC, LOGS_TOPIC, INVENTORY_TOPIC), "lines": (LINES_TOPIC, INVENTORY_TOPIC)}

SCOPE = "kappa/connectors/simulator"
TIME_MARK, VALUE_MARK = "@time@", "@value@"


class MetricTemplate:
    """The metrics request of one machine without times and values, so that filling them in is a single join."""

    def __init__(self, machine: Machine, instruments: Sequence[Instrument], start_unix_nano: int) -> None:
        points = ((instrument, VALUE_MARK) for instrument in instruments)
        request = orjson.dumps(otlp.metrics(machine.resource(), SCOPE, points, start_unix_nano, TIME_MARK))
        request = request.replace(f'"asInt":"{VALUE_MARK}"'.encode(), b'"asDouble":@value@', GAUGES)
        pieces = request.replace(VALUE_MARK.encode(), TIME_MARK.encode()).split(TIME_MARK.encode())
        self._parts = [b""] * (2 * len(pieces) - 1)
        self._parts[0::2] = pieces
        self._points = len(instruments)

    def fill(self, time_unix_nano: int, values: Sequence[bytes]) -> bytes:
        """The request of one scrape; `values` are the numbers in JSON, gauges first."""
        self._parts[1::4] = [b"%d" % time_unix_nano] * self._points
        self._parts[3::4] = values
        return b"".join(self._parts)


def numbers(values: Floats) -> list[list[bytes]]:
    """The JSON of each number of a machines x series matrix: gauges as doubles, counters as integers."""
    gauges = _rows(np.ascontiguousarray(values[:, :GAUGES]))
    counters = _rows(np.ascontiguousarray(values[:, GAUGES:]).astype(np.int64))
    return [gauge + counter for gauge, counter in zip(gauges, counters, strict=True)]


def _rows(matrix: np.ndarray[Any, Any]) -> list[list[bytes]]:
    text = orjson.dumps(matrix, option=orjson.OPT_SERIALIZE_NUMPY)
    return [row.split(b",") for row in text[2:-2].split(b"],[")]


def log_request(machine: Machine, lines: Iterable[SimulatedLine]) -> bytes:
    """One machine's log lines as an OTLP JSON request."""
    return orjson.dumps(otlp.logs(machine.resource(), SCOPE, (simulated.line for simulated in lines)))


def metric_line(machine: Machine, instrument: Instrument, time_unix_nano: int, number: bytes) -> bytes:
    """One data point as a `lines` record."""
    return orjson.dumps(
        {
            "time_unix_nano": time_unix_nano,
            "machine": machine.name,
            "name": instrument.name,
            "value": orjson.Fragment(number),
            "unit": instrument.unit,
            "attributes": dict(instrument.attributes),
        }
    )


def log_line(machine: Machine, simulated: SimulatedLine) -> bytes:
    """One log line as a `lines` record."""
    line = simulated.line
    return orjson.dumps(
        {
            "time_unix_nano": line.time_unix_nano,
            "machine": machine.name,
            "body": line.body,
            "severity_text": line.severity_text,
            "attributes": dict(line.attributes),
        }
    )


MALFORMED = (b"not json at all", b"[1,2,3]", b'{"resourceMetrics":17}', b"\xff\xfe\x00\xc3\x28", b'"a string"')


def malformed(number: int, good: bytes) -> bytes:
    """The n-th broken record: a truncated good one and other damage by turns."""
    choice = number % (len(MALFORMED) + 1)
    return good[: len(good) // 2] if choice == 0 else MALFORMED[choice - 1]
