"""The real collectors' bytes, each point compared with what opentelemetry-proto or the plain JSON says."""

import json
from decimal import Decimal

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest


def attributes(pairs):
    return {pair.key: pair.value.string_value for pair in pairs}


def metric_points(request):
    for resource in request.resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                kind = metric.WhichOneof("data")
                data = getattr(metric, kind)
                for point in data.data_points:
                    yield {
                        "machine": attributes(resource.resource.attributes)["host.name"],
                        "time": point.time_unix_nano,
                        "name": metric.name,
                        "unit": metric.unit,
                        "type": kind,
                        "value": float(getattr(point, point.WhichOneof("value"))),
                        "temporality": "cumulative" if kind == "sum" else None,
                        "monotonic": data.is_monotonic if kind == "sum" else None,
                        "attributes": attributes(point.attributes),
                    }


def log_lines(request):
    for resource in request.resource_logs:
        for scope in resource.scope_logs:
            for record in scope.log_records:
                yield {
                    "machine": attributes(resource.resource.attributes)["host.name"],
                    "time": record.time_unix_nano,
                    "body": record.body.string_value,
                    "severity_number": record.severity_number,
                    "severity_text": record.severity_text,
                    "attributes": attributes(record.attributes),
                }


def decoded(rows, fields):
    return [
        {"machine": row.machine, "time": event.time_unix_nano} | {field: event[field] for field in fields}
        for row in rows
        for event in row.events
    ]


METRIC_FIELDS = ["name", "unit", "type", "value", "temporality", "monotonic", "attributes"]
LOG_FIELDS = ["body", "severity_number", "severity_text", "attributes"]


def parse(value, request):
    return json_format.Parse(value, request()) if value[:1] == b"{" else request.FromString(value)


@pytest.mark.parametrize(
    ("wire_format", "file"),
    [
        ("otlp_metrics_json", "otlp_kafka.metrics.json.json"),
        ("otlp_metrics_json", "otlp_kafka.metrics.nokey.json"),
        ("otlp_metrics_proto", "otlp_kafka.metrics.proto.bin"),
    ],
)
def test_otlp_metrics_equal_the_reference_parse(decode, samples, wire_format, file):
    value = (samples / "otlp" / file).read_bytes()
    [rows] = decode(wire_format, [value])
    assert [row.error for row in rows] == [None] * len(rows)
    wanted = list(metric_points(parse(value, ExportMetricsServiceRequest)))
    assert sorted(decoded(rows, METRIC_FIELDS), key=repr) == sorted(wanted, key=repr)


@pytest.mark.parametrize(
    ("wire_format", "file"),
    [("otlp_logs_json", "otlp_kafka.logs.batch.json"), ("otlp_logs_proto", "otlp_kafka.logs.batch.proto.bin")],
)
def test_otlp_logs_equal_the_reference_parse(decode, samples, wire_format, file):
    value = (samples / "otlp" / file).read_bytes()
    [rows] = decode(wire_format, [value])
    assert decoded(rows, LOG_FIELDS) == list(log_lines(parse(value, ExportLogsServiceRequest)))


def test_json_and_protobuf_of_the_same_metrics_give_the_same_rows(decode, samples):
    value = (samples / "otlp" / "otlp_kafka.metrics.nokey.json").read_bytes()
    binary = json_format.Parse(value, ExportMetricsServiceRequest()).SerializeToString()
    [from_json], [from_binary] = decode("otlp_metrics_json", [value]), decode("otlp_metrics_proto", [binary])
    fields = ["batch", "machine", "kind", "resource", "events", "error"]
    assert [[row[f] for f in fields] for row in from_json] == [[row[f] for f in fields] for row in from_binary]


def test_collectd_equals_its_json(decode, samples):
    lines = (samples / "collectd" / "collectd_write_kafka.json.txt").read_bytes().split()
    for line, rows in zip(lines, decode("collectd_json", lines), strict=True):
        [expected], [row] = json.loads(line, parse_float=Decimal), rows
        assert row.machine == expected["host"]
        assert [e.value for e in row.events] == [None if v is None else float(v) for v in expected["values"]]
        assert {e.time_unix_nano for e in row.events} == {int(expected["time"] * 10**9)}
        instances = {k: expected[k] for k in ("plugin_instance", "type_instance") if expected[k]}
        for event, dsname, dstype in zip(row.events, expected["dsnames"], expected["dstypes"], strict=True):
            suffix = "" if dsname == "value" else f".{dsname}"
            assert event.name == f"collectd.{expected['plugin']}.{expected['type']}{suffix}"
            assert event.attributes == instances
            assert (event.type, event.temporality) == (("sum", "cumulative") if dstype == "derive" else ("gauge", None))


@pytest.mark.parametrize(
    ("wire_format", "file"),
    [("syslog_json", "rsyslog_omkafka.json.txt"), ("syslog_rfc5424", "rsyslog_omkafka.rfc5424.txt")],
)
def test_syslog_of_both_forms_gives_the_same_line(decode, samples, wire_format, file):
    [[row]] = decode(wire_format, [(samples / "rsyslog" / file).read_bytes()])
    [event] = row.events
    assert row.machine == "vm"
    assert row.resource == {"host.name": "vm", "service.name": "nova-compute"}
    assert event.time_unix_nano == 1795245401279297000
    assert event.body == 'Instance destroyed: took 0.42s "quoted" \\ path=/var/log/å'
    assert (event.severity_number, event.severity_text) == (13, "warning")
    assert event.attributes == {
        "syslog.facility": "daemon",
        "syslog.procid": "4242",
        "syslog.msgid": "VMSTART",
        "syslog.structured_data": '[timeQuality tzKnown="1" isSynced="0"]'
        '[origin@32473 vm="b9000564-fe1a-409b-b8cc-1e88b294cd1d"]',
    }
