import json

import numpy as np
import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from ops.simulator import encode, signals
from ops.simulator.simulation import Lines, Malformed, Scrape


def of_kind(simulation, kind):
    return [record for record in simulation.records() if isinstance(record.content, kind)]


def series_of(metric, point):
    labels = sorted((a.key, a.value.string_value) for a in point.attributes)
    return metric.name + ("{" + ",".join(f"{k}={v}" for k, v in labels) + "}" if labels else "")


def test_a_scrape_is_otlp_json_with_every_value_and_time(simulate):
    simulation = simulate(seconds=20)
    for record in of_kind(simulation, Scrape):
        (resource,) = Parse(record.value, ExportMetricsServiceRequest()).resource_metrics
        attributes = {a.key: a.value.string_value for a in resource.resource.attributes}
        assert attributes == simulation.machines[record.content.machine].resource()
        (scope,) = resource.scope_metrics
        found = {}
        for metric in scope.metrics:
            data = metric.gauge if metric.HasField("gauge") else metric.sum
            for point in data.data_points:
                assert point.time_unix_nano == record.content.time_unix_nano
                number = point.as_int if point.HasField("as_int") else point.as_double
                found[series_of(metric, point)] = (number, metric.unit, metric.sum.is_monotonic)
        instruments = simulation.instruments[record.content.machine]
        assert found == {
            i.series: (value, i.unit, i.monotonic) for i, value in zip(instruments, record.content.values, strict=True)
        }


def test_cumulative_sums_say_so(simulate):
    record = of_kind(simulate(seconds=10), Scrape)[0]
    metrics = json.loads(record.value)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
    (io,) = [metric for metric in metrics if metric["name"] == "system.network.io"]
    assert io["sum"]["aggregationTemporality"] == 2
    assert io["sum"]["isMonotonic"] is True
    assert [len(point["attributes"]) for point in io["sum"]["dataPoints"]] == [2, 2]
    assert all(isinstance(point["asInt"], str) for point in io["sum"]["dataPoints"])
    (memory,) = [metric for metric in metrics if metric["name"] == "system.memory.usage"]
    assert "isMonotonic" not in memory["sum"]


def test_log_lines_are_otlp_json_in_full(simulate):
    for record in of_kind(simulate(seconds=20), Lines):
        (resource,) = Parse(record.value, ExportLogsServiceRequest()).resource_logs
        found = [
            (r.time_unix_nano, r.body.string_value, r.severity_text, r.severity_number)
            for r in resource.scope_logs[0].log_records
        ]
        assert found == [tuple(simulated.line[:4]) for simulated in record.content.lines]


def test_line_records_have_exactly_the_documented_fields(simulate):
    simulation = simulate(seconds=10, format="lines")
    metric = json.loads(of_kind(simulation, Scrape)[0].value)
    assert metric.keys() == {"time_unix_nano", "machine", "name", "value", "unit", "attributes"}
    log = json.loads(of_kind(simulation, Lines)[0].value)
    assert log.keys() == {"time_unix_nano", "machine", "body", "severity_text", "attributes"}


def test_line_records_carry_the_same_events_as_otlp(simulate):
    simulation = simulate(seconds=20, format="lines")
    for record in of_kind(simulation, Scrape):
        event = json.loads(record.value)
        (value,) = record.content.values[record.part]
        (instrument,) = simulation.instruments[record.content.machine][record.part]
        assert (event["name"], event["value"], event["attributes"]) == (
            instrument.name,
            value,
            dict(instrument.attributes),
        )
        assert record.topic == "telemetry.lines"


def test_numbers_are_short_and_exact():
    row = np.zeros((1, 29))
    row[0, 0], row[0, signals.GAUGES] = 0.1, 12345678901.0
    (texts,) = encode.numbers(row)
    assert (texts[0], texts[signals.GAUGES]) == (b"0.1", b"12345678901")


def test_malformed_records_are_of_many_kinds_and_never_a_request(simulate):
    records = of_kind(simulate("malformed:vm-01@+0s/60s"), Malformed)
    assert len({record.value for record in records}) >= 6
    for record in records:
        with pytest.raises((ValueError, TypeError, KeyError, IndexError)):
            json.loads(record.value)["resourceMetrics"][0]["resource"]
