"""Bad data: mutated sample bytes, hostile values, and how many events a reference finds in them."""

import json
import random
from pathlib import Path

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

LINE = b'{"time_unix_nano":1795245484412222354,"machine":"m","name":"n","value":1.5,"unit":"By","attributes":{"a":"b"}}'
TOKENS = [
    b"null",
    b"NaN",
    b"-Infinity",
    b"1e999",
    b"-1",
    b"9" * 400,
    b'"x"',
    b"[]",
    b"{}",
    b"[null]",
    b"253402300800000000000",
    b"\xff\xfe",
    b"\x00",
    b'"\\ud800"',
    b",",
    b"}",
    b"]",
    b'"',
    b"[" * 1500,
    b'"-5"',
    b'"253402300800000000000"',
    b'"9223372036854775807"',
    b'"NaN"',
    b'"Infinity"',
    b'"1_0"',
    b"true",
    b"1.5e300",
]
# Keys of the formats, to stand twice in an object.
KEYS = (b"timeUnixNano", b"asDouble", b"attributes", b"key", b"time", b"host", b"values", b"machine", b"message")


def seeds(samples, wire_format):
    otlp = samples / "otlp"
    return {
        "otlp_metrics_json": lambda: [first_points(otlp / "otlp_kafka.metrics.json.json")],
        "otlp_logs_json": lambda: [first_records(otlp / "otlp_kafka.logs.batch.json")],
        "otlp_metrics_proto": lambda: [(otlp / "otlp_kafka.metrics.proto.bin").read_bytes()],
        "otlp_logs_proto": lambda: [small(otlp / "otlp_kafka.logs.batch.proto.bin")],
        "collectd_json": lambda: (samples / "collectd" / "collectd_write_kafka.json.txt").read_bytes().split()[:50],
        "syslog_json": lambda: [(samples / "rsyslog" / "rsyslog_omkafka.json.txt").read_bytes()],
        "syslog_rfc5424": lambda: [(samples / "rsyslog" / "rsyslog_omkafka.rfc5424.txt").read_bytes()],
        "lines_json": lambda: [LINE],
    }[wire_format]()


def first_points(file: Path) -> bytes:
    request = json.loads(file.read_bytes())
    for metric in request["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]:
        del metric["sum"]["dataPoints"][2:]
    return json.dumps(request).encode()


def first_records(file: Path) -> bytes:
    request = json.loads(file.read_bytes())
    del request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][3:]
    return json.dumps(request).encode()


def small(file: Path) -> bytes:
    request = ExportLogsServiceRequest.FromString(file.read_bytes())
    del request.resource_logs[0].scope_logs[0].log_records[3:]
    return request.SerializeToString()


def mutate(value: bytes, rng: random.Random) -> bytes:
    for _ in range(rng.choice((0, 1, 1, 1, 2, 5))):
        at, length = rng.randrange(len(value) + 1), rng.choice((0, 1, 1, 2, 8, 40))
        kind = rng.randrange(7)
        if kind == 0:
            value = value[:at]
        elif kind == 1:
            value = value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]
        elif kind == 2:
            value = value[:at] + value[at + length :]
        elif kind == 3:
            value = value[:at] + value[at : at + length] * 2 + value[at + length :]
        elif kind == 4 and (opened := value.find(b"{", at)) >= 0:
            doubled = b'"%b":%b,' % (rng.choice(KEYS), rng.choice(TOKENS))
            value = value[: opened + 1] + doubled + value[opened + 1 :]
        else:
            end = next((i for i in range(at, len(value)) if value[i : i + 1] in b",}]:"), at)
            value = value[:at] + rng.choice(TOKENS) + value[end:]
    return value


def at(value, *path):
    """All values on a path of keys, through the lists on the way."""
    for key in path:
        value = [found for item in value if isinstance(item, dict) for found in [item.get(key)] if found is not None]
        value = [x for item in value for x in (item if isinstance(item, list) else [item])]
    return value


def points(request):
    kinds = ("gauge", "sum", "histogram", "exponentialHistogram", "summary")
    found = at([request], "resourceMetrics", "scopeMetrics", "metrics")
    return sum(len(at(found, kind, "dataPoints")) for kind in kinds)


def proto_points(request):
    return sum(
        len(getattr(metric, metric.WhichOneof("data")).data_points)
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.WhichOneof("data")
    )


def proto_lines(request):
    return sum(len(scope.log_records) for resource in request.resource_logs for scope in resource.scope_logs)


def loads(value):
    return json.loads(value.decode(errors="replace"))


REFERENCES = {
    "otlp_metrics_json": lambda value: points(loads(value)),
    "otlp_logs_json": lambda value: len(at([loads(value)], "resourceLogs", "scopeLogs", "logRecords")),
    "otlp_metrics_proto": lambda value: proto_points(ExportMetricsServiceRequest.FromString(value)),
    "otlp_logs_proto": lambda value: proto_lines(ExportLogsServiceRequest.FromString(value)),
    "collectd_json": lambda value: len(at(loads(value), "values")),
}


FORMATS = (*REFERENCES, "syslog_json", "syslog_rfc5424", "lines_json")


def expected(wire_format: str, value: bytes) -> int:
    """How many events a decoded record must have given."""
    if wire_format not in REFERENCES:
        return 1
    try:
        return REFERENCES[wire_format](value)
    except DecodeError as error:
        raise AssertionError(f"decoded what the reference can't: {value!r}") from error


HOSTILE = {
    "10 MB": b'{"a":"' + b"x" * 10_000_000 + b'"}',
    "10 MB of quotes": b'<13>1 - h a - - [a b="' + b'\\"' * 5_000_000 + b'"] m',
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "many parameters": b"<13>1 - h a - - [a" + b' b="c"' * 100_000 + b"] m",
    "many elements": b"<13>1 - h a - - " + b'[a b="c"]' * 100_000 + b" m",
    "long message": b"<13>1 - h a - - - " + b"x " * 5_000_000,
    "zeros": bytes(100_000),
    "not UTF-8": bytes(range(128, 256)) * 1000,
}
