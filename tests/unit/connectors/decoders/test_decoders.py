"""Each format on tiny frames, and each error code."""

import json
import math
import pkgutil

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from connectors.decoders import formats
from connectors.decoders.columns import LARGEST_BYTES
from connectors.decoders.registry import DECODERS, decoder_of
from infra.contract.topics import load_topics
from infra.errors import UserError
from tests.unit.connectors.decoders.conftest import RECEIVED

T = "1795245484412222354"
HOST = {"key": "host.name", "value": {"stringValue": "vm-1"}}


def attribute(key, value):
    return {"key": key, "value": {"stringValue": value}}


def metrics(*data, resource=(HOST,)):
    scope = {"metrics": [{"name": "m", "unit": "By", **one} for one in data]}
    return json.dumps(
        {"resourceMetrics": [{"resource": {"attributes": list(resource)}, "scopeMetrics": [scope]}]}
    ).encode()


def gauge(**point):
    return {"gauge": {"dataPoints": [{"timeUnixNano": T, **point}]}}


def binary(value):
    return json_format.Parse(value, ExportMetricsServiceRequest()).SerializeToString()


HISTOGRAM = {
    "histogram": {
        "aggregationTemporality": 1,
        "dataPoints": [
            {
                "timeUnixNano": T,
                "count": "4",
                "sum": 10.0,
                "min": 0.5,
                "max": 6.5,
                "bucketCounts": ["1", "2", "1"],
                "explicitBounds": [1.0, 5.0],
            }
        ],
    }
}
EXPONENTIAL = {
    "exponentialHistogram": {
        "aggregationTemporality": 2,
        "dataPoints": [
            {
                "timeUnixNano": T,
                "count": "10",
                "sum": 20.0,
                "scale": 0,
                "zeroCount": "3",
                "positive": {"offset": 1, "bucketCounts": ["4", "1"]},
                "negative": {"offset": -1, "bucketCounts": ["0", "2"]},
            }
        ],
    }
}
SUMMARY = {
    "summary": {
        "dataPoints": [
            {"timeUnixNano": T, "count": "2", "sum": 3.0, "quantileValues": [{"quantile": 0.5, "value": 1.25}]}
        ]
    }
}


def test_every_format_of_the_topic_map_has_a_decoder():
    assert {topic.format for topic in load_topics().telemetry} == {decoder.name for decoder in DECODERS}


def test_an_unknown_format_is_a_user_error():
    with pytest.raises(UserError, match=r"'nagios'; use one of collectd_json, control_json, lines_json"):
        decoder_of("nagios")


def test_every_module_of_formats_declares_the_decoder_of_its_name():
    modules = sorted(module.name for module in pkgutil.iter_modules(formats.__path__))
    assert [decoder.name for decoder in DECODERS] == modules


def test_protobuf_needs_python_and_nothing_else_does():
    assert {d.name for d in DECODERS if d.needs_python} == {"otlp_logs_proto", "otlp_metrics_proto"}


@pytest.mark.parametrize("wire_format", ["otlp_metrics_json", "otlp_metrics_proto"])
class TestOtlpMetrics:
    @pytest.fixture
    def events(self, decode, wire_format):
        def run(*data, **kwargs):
            value = metrics(*data, **kwargs)
            [[row]] = decode(wire_format, [value if wire_format.endswith("json") else binary(value)])
            assert row.error is None
            return row.events

        return run

    def test_numbers(self, events):
        found = events(gauge(asInt="-7"), gauge(asDouble=1.5), gauge())
        assert [event.value for event in found] == [-7.0, 1.5, None]
        assert {event.time_unix_nano for event in found} == {int(T)}

    def test_no_recorded_value(self, events):
        assert [event.value for event in events(gauge(asDouble=1.5, flags=1))] == [None]

    def test_nan_and_infinity_are_left_to_be_judged(self, events):
        nan, infinite = events(gauge(asDouble="NaN"), gauge(asDouble="-Infinity"))
        assert math.isnan(nan.value)
        assert infinite.value == -math.inf

    def test_unknown_and_impossible_times_are_null(self, events):
        found = events(gauge(timeUnixNano="0", asInt="1"), gauge(timeUnixNano="18446744073709551615", asInt="1"))
        assert [event.time_unix_nano for event in found] == [None, None]

    def test_sum(self, events):
        points = {"dataPoints": [{"timeUnixNano": T, "asInt": "3"}], "aggregationTemporality": 1, "isMonotonic": True}
        [event] = events({"sum": points})
        assert (event.type, event.temporality, event.monotonic) == ("sum", "delta", True)

    def test_histogram(self, events):
        [event] = events(HISTOGRAM)
        assert (event.type, event.temporality, event.value) == ("histogram", "delta", 2.5)
        assert event.histogram.asDict() == {
            "count": 4,
            "sum": 10.0,
            "min": 0.5,
            "max": 6.5,
            "bounds": [1.0, 5.0],
            "counts": [1, 2, 1],
            "quantiles": None,
        }

    def test_a_histogram_without_observations_has_the_mean_0(self, events):
        empty = {"histogram": {"dataPoints": [{"timeUnixNano": T, "count": "0"}]}}
        assert [event.value for event in events(empty)] == [0.0]

    def test_exponential_histogram(self, events):
        [event] = events(EXPONENTIAL)
        assert (event.type, event.value) == ("exponential_histogram", 2.0)
        assert event.histogram.bounds == pytest.approx([-1.0, -0.5, 2.0, 4.0])
        assert event.histogram.counts == [2, 0, 3, 4, 1]

    def test_exponential_bounds_stay_finite(self, events):
        point = {"timeUnixNano": T, "scale": -20, "positive": {"offset": 5, "bucketCounts": ["1"]}}
        [event] = events({"exponentialHistogram": {"dataPoints": [point]}})
        assert event.histogram.bounds == [1.7976931348623157e308]

    def test_summary(self, events):
        [event] = events(SUMMARY)
        assert (event.type, event.value, event.histogram.quantiles) == ("summary", 1.5, {"0.5": "1.25"})

    def test_series_is_the_name_and_its_sorted_attributes(self, events):
        own = [attribute("state", "idle"), attribute("cpu.id", "1"), attribute("cpu", "0")]
        [plain, labelled] = events(gauge(asInt="1"), gauge(asInt="1", attributes=own))
        assert plain.series == "m"
        assert labelled.series == "m{cpu=0,cpu.id=1,state=idle}"
        assert labelled.attributes == {"cpu": "0", "cpu.id": "1", "state": "idle"}

    def test_the_order_of_a_scrape_does_not_show(self, events):
        points = [gauge(asInt="1", attributes=[attribute("disk", disk)]) for disk in ("b", "a", "\U0001f4be", "\uffee")]
        assert events(*points, HISTOGRAM) == events(HISTOGRAM, *reversed(points))

    def test_series_tells_apart_the_services_of_a_machine(self, events):
        [event] = events(gauge(asInt="1"), resource=(HOST, attribute("service.name", "api")))
        assert event.series == "m{service.name=api}"
        assert event.attributes == {}

    def test_attribute_values_as_text(self, events):
        values = {
            "i": {"intValue": "5"},
            "d": {"doubleValue": 1.5},
            "b": {"boolValue": True},
            "a": {"arrayValue": {"values": [{"stringValue": "x"}]}},
        }
        own = [{"key": key, "value": value} for key, value in values.items()]
        [event] = events(gauge(asInt="1", attributes=own))
        found = dict(event.attributes)
        assert json.loads(found.pop("a")) == {"values": [{"stringValue": "x"}]}
        assert found == {"i": "5", "d": "1.5", "b": "true"}

    def test_of_a_key_that_stands_twice_the_first_counts(self, events):
        [event] = events(gauge(asInt="1", attributes=[attribute("k", "1"), attribute("k", "2")]))
        assert event.attributes == {"k": "1"}

    @pytest.mark.parametrize(
        ("resource", "machine"),
        [
            ((HOST, attribute("k8s.pod.name", "pod")), "pod"),  # its host.name is its node
            ((attribute("service.instance.id", "i"), attribute("k8s.pod.name", "pod")), "pod"),
            ((attribute("container.id", "c"),), "c"),
        ],
    )
    def test_machine(self, decode, wire_format, resource, machine):
        value = metrics(gauge(asInt="1"), resource=resource)
        [[row]] = decode(wire_format, [value if wire_format.endswith("json") else binary(value)])
        assert row.machine == machine

    def test_records_that_cannot_be_used(self, decode, wire_format):
        values = {"no_machine": metrics(gauge(asInt="1"), resource=()), "no_events": metrics()}
        raw = [v if wire_format.endswith("json") else binary(v) for v in values.values()]
        assert [[row.error for row in rows] for rows in decode(wire_format, raw)] == [[code] for code in values]

    def test_a_row_for_each_resource(self, decode, wire_format):
        one, two = json.loads(metrics(gauge(asInt="1"))), json.loads(metrics(gauge(asInt="2"), gauge(asInt="3")))
        value = json.dumps({"resourceMetrics": one["resourceMetrics"] + two["resourceMetrics"]}).encode()
        [rows] = decode(wire_format, [value if wire_format.endswith("json") else binary(value)])
        assert [(row.batch, [e.value for e in row.events]) for row in rows] == [(0, [1.0]), (1, [2.0, 3.0])]


NOT_JSON = [None, b"", b" ", b"{", b"{]", b"\xff\xfe", b'{"resourceMetrics":[]']
NOT_OTLP = [
    b"{}",
    b"[]",
    b"null",
    b"3",
    b'{"resourceMetrics":3}',
    b'{"resourceMetrics":[{"scopeMetrics":[3]}]}',
]


@pytest.mark.parametrize(
    ("wire_format", "code", "values"),
    [
        ("otlp_metrics_json", "not_json", [*NOT_JSON, b"{} {}"]),
        ("otlp_metrics_json", "not_otlp", NOT_OTLP),
        ("otlp_metrics_json", "no_events", [b'{"resourceMetrics":[]}', b'{"resourceMetrics":[{}]}']),
        ("otlp_logs_json", "not_json", NOT_JSON),
        ("otlp_logs_json", "not_otlp", [b"{}", b'{"resourceLogs":[{"scopeLogs":{}}]}']),
        ("otlp_logs_json", "no_events", [b'{"resourceLogs":[]}']),
        ("otlp_logs_json", "no_machine", [b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[{}]}]}]}']),
        ("otlp_metrics_proto", "not_protobuf", [None, b"\xff", b"{}"]),
        ("otlp_logs_proto", "not_protobuf", [None, b"\xff", b"{}"]),
        ("otlp_logs_proto", "no_events", [b""]),
        ("collectd_json", "not_json", NOT_JSON),
        ("collectd_json", "not_collectd", [b"{}", b"[3]", b"[] []", b'[{"values":3}]']),
        ("collectd_json", "no_events", [b"[]", b'[{"host":"h","values":[]}]']),
        ("collectd_json", "no_machine", [b'[{"values":[1]}]']),
        ("syslog_json", "not_json", NOT_JSON),
        ("syslog_json", "not_syslog", [b"[]", b"3", b"{}}"]),
        ("syslog_json", "no_events", [b'{"host":"h"}']),
        ("syslog_json", "no_machine", [b'{"host":"-","message":"x"}']),
        ("syslog_rfc5424", "not_rfc5424", [None, b"", b"<13>Nov 21 07:16:41 vm app: x", b"<192>1 - h a - - - x"]),
        ("syslog_rfc5424", "no_machine", [b"<13>1 - - a - - - x"]),
        ("lines_json", "not_json", NOT_JSON),
        ("lines_json", "not_line", [b"[]", b'{"attributes":3}']),
        ("lines_json", "no_events", [b"{}", b'{"machine":"m"}']),
        ("lines_json", "no_machine", [b'{"name":"n","value":1}', b'{"machine":"","body":"x"}']),
    ],
)
def test_error_codes(decode, wire_format, code, values):
    found = decode(wire_format, values)
    assert {value: [row.error for row in rows] for value, rows in zip(values, found, strict=True)} == {
        value: [code] for value in values
    }
    assert all(row.events is None for rows in found for row in rows)


def parts(wire_format, count):
    """A record of `count` parts, each with one event and without a machine."""
    if wire_format == "collectd_json":
        return json.dumps([{"values": [1], "plugin": "p" * 150}] * count).encode()
    if wire_format.startswith("otlp_metrics"):
        [one] = json.loads(metrics(gauge(asInt="1", attributes=[attribute("k", "v" * 50)]), resource=()))[
            "resourceMetrics"
        ]
        request, field = ExportMetricsServiceRequest(), "resourceMetrics"
    else:
        one = {"scopeLogs": [{"logRecords": [{"body": {"stringValue": "b" * 100}}]}]}
        request, field = ExportLogsServiceRequest(), "resourceLogs"
    value = json.dumps({field: [one] * count})
    return value.encode() if wire_format.endswith("json") else json_format.Parse(value, request).SerializeToString()


OF_MANY_PARTS = ["collectd_json", "otlp_metrics_json", "otlp_logs_json", "otlp_metrics_proto", "otlp_logs_proto"]


@pytest.mark.parametrize("wire_format", OF_MANY_PARTS)
def test_few_unusable_parts_of_a_record_keep_its_bytes_each(decode, wire_format):
    value = parts(wire_format, 2)
    [rows] = decode(wire_format, [value])
    assert [(row.batch, row.error, row.value) for row in rows] == [(n, "no_machine", value) for n in range(2)]


@pytest.mark.parametrize("wire_format", OF_MANY_PARTS)
def test_the_parts_of_a_record_hold_no_more_bytes_than_the_largest_record(decode, wire_format):
    """Together these would be 10 to 40 GB, which ended the job."""
    value = parts(wire_format, 12_000)
    assert 800_000 < len(value) < LARGEST_BYTES
    [rows] = decode(wire_format, [value])
    assert [(row.batch, row.error, row.value) for row in rows] == [(n, "no_machine", None) for n in range(12_000)]


def test_otlp_log_lines(decode):
    records = [
        {"observedTimeUnixNano": T, "severityText": "err", "body": {"stringValue": "x"}},
        {"timeUnixNano": T, "severityNumber": 9, "body": {"intValue": "5"}},
        {"body": {"kvlistValue": {"values": [attribute("a", "b")]}}},
    ]
    value = {"resourceLogs": [{"resource": {"attributes": [HOST]}, "scopeLogs": [{"logRecords": records}]}]}
    [[row]] = decode("otlp_logs_json", [json.dumps(value, separators=(",", ":")).encode()])
    assert [e.time_unix_nano for e in row.events] == [int(T), int(T), None]
    assert [e.severity_number for e in row.events] == [17, 9, None]
    assert [e.body for e in row.events] == ["x", "5", '{"values":[{"key":"a","value":{"stringValue":"b"}}]}']


def test_lines(decode):
    metric = b'{"time_unix_nano":%s,"machine":"m","name":"n","value":1.5,"unit":"By","attributes":{"b":"2","a":"1"}}'
    log = b'{"time_unix_nano":%s,"machine":"m","body":"hello","severity_text":"WARN","attributes":{}}'
    [[one], [two]] = decode("lines_json", [metric % T.encode(), log % T.encode()])
    assert (one.machine, one.kind, one.resource) == ("m", "metric", {"host.name": "m"})
    [event] = one.events
    assert (event.series, event.value, event.unit) == ("n{a=1,b=2}", 1.5, "By")
    [event] = two.events
    assert (two.kind, event.body, event.severity_number, event.time_unix_nano) == ("log", "hello", 13, int(T))


def test_collectd_types_and_times(decode):
    value = (
        b'[{"values":[1,null],"dstypes":["absolute","counter"],"dsnames":["rx","tx"],"time":1795245409.123456,'
        b'"host":"h","plugin":"p","plugin_instance":"i","type":"t","type_instance":""},'
        b'{"values":[2],"dstypes":["gauge"],"dsnames":["value"],"time":1e300,"host":"g","plugin":"p","type":"t"}]'
    )
    [[first, second]] = decode("collectd_json", [value])
    rx, tx = first.events
    assert (rx.name, rx.type, rx.temporality, rx.value) == ("collectd.p.t.rx", "sum", "delta", 1.0)
    assert (tx.name, tx.type, tx.temporality, tx.value) == ("collectd.p.t.tx", "sum", "cumulative", None)
    assert rx.series == "collectd.p.t.rx{plugin_instance=i}"
    assert rx.time_unix_nano == 1795245409123456000
    assert (second.machine, second.events[0].name, second.events[0].time_unix_nano) == ("g", "collectd.p.t", None)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("2026-11-21T07:16:41Z", 1795245401000000000),
        ("2026-11-21T08:16:41.123456789+01:00", 1795245401123456789),
        ("2026-11-21T07:16:41", None),
        ("9999-11-21T07:16:41Z", None),
        ("2026-02-30T07:16:41Z", None),
        ("-", None),
    ],
)
def test_syslog_times(decode, text, nanoseconds):
    [[row]] = decode("syslog_rfc5424", [f"<13>1 {text} h a - - - x".encode()])
    assert row.events[0].time_unix_nano == nanoseconds


def test_rfc5424_messages(decode):
    lines = {
        b'<0>1 - h - - - [a b="\\"]"] m\n': "m",
        b"<191>1 - h a 1 ID - \xef\xbb\xbftwo\nlines": "two\nlines",
        b"<13>1 - h a - - -": "",
        b"<13>1 - h a - - - caf\xe9": "caf\ufffd",
    }
    assert [rows[0].events[0].body for rows in decode("syslog_rfc5424", list(lines))] == list(lines.values())


def test_a_control_event_has_the_brokers_time_and_its_body_in_one_form(decode):
    [[row]] = decode("control_json", [b' {"rule":"r1", "machine":"upf-*", "action":"suppress", "size":2} '])
    assert (row.error, row.machine, row.kind) == (None, "upf-*", "control")
    [event] = row.events
    assert (event.time_unix_nano, event.type) == (int(RECEIVED.timestamp()) * 10**9, "control")
    assert event.body == '{"action":"suppress","machine":"upf-*","rule":"r1","size":2.0}'


NOVELTY = {"id": "n", "verdict": "anomaly", "machine": "vm-1", "kind": "metric", "text": "t", "time_unix_nano": 20}
FEEDBACK = {
    "action": "feedback",
    "machine": "vm-1",
    "novelty": "n",
    "verdict": "anomaly",
    "kind": "metric",
    "series": "cpu",
    "observed": 9.0,
    "expected": 5.0,
    "novelty_record": json.dumps(NOVELTY),
}
MACHINE = FEEDBACK | {"kind": "machine", "series": None, "expected": None}
SUPPRESS = {"action": "suppress", "machine": "*", "rule": "r1", "direction": "above", "size": 2.0}


def as_json(control):
    return json.dumps({name: value for name, value in control.items() if value is not None}).encode()


def test_a_control_event_of_version_0_1_0_has_todays_names(decode):
    then = FEEDBACK | {"novelty_record": None, "told": FEEDBACK["novelty_record"]}
    [[row]] = decode("control_json", [as_json(then)])
    assert row.error is None
    [event] = row.events
    assert json.loads(event.body) == FEEDBACK


@pytest.mark.parametrize(
    "control",
    [
        FEEDBACK | {"by": "ada"},
        MACHINE,
        MACHINE | {"verdict": "silence"},
        MACHINE | {"verdict": "new_entity", "observed": None},
        SUPPRESS,
        {"action": "allow", "machine": "*", "rule": "r1", "by": "ada"},
    ],
)
def test_a_control_event_is_passed_on_as_it_is(decode, control):
    [[row]] = decode("control_json", [as_json(control)])
    assert row.error is None
    assert json.loads(row.events[0].body) == {name: value for name, value in control.items() if value is not None}


def test_a_control_event_that_the_detector_could_not_obey_is_rejected(decode):
    odd = [
        *(FEEDBACK | {name: None} for name in ("verdict", "kind", "series", "observed", "expected")),
        FEEDBACK | {"verdict": ""},
        FEEDBACK | {"observed": 1e301},
        FEEDBACK | {"by": "x" * 1_001},
        FEEDBACK | {"novelty": "x" * 1_001},
        FEEDBACK | {"novelty_record": "{"},
        FEEDBACK | {"novelty_record": "[]"},
        FEEDBACK | {"novelty_record": json.dumps({"id": "n"})},
        FEEDBACK | {"novelty_record": json.dumps(NOVELTY | {"time_unix_nano": "soon"})},
        MACHINE | {"observed": -1.0},
        MACHINE | {"verdict": "silence", "observed": None},
        SUPPRESS | {"size": 0.0},
        SUPPRESS | {"size": -2.0},
        SUPPRESS | {"direction": "sideways"},
        SUPPRESS | {"series": "x" * 1_001},
        {"action": "reset", "machine": "vm-1", "series": ""},
    ]
    found = decode("control_json", [as_json(control) for control in odd])
    assert [(row.error, row.events) for [row] in found] == [("not_control", None)] * len(odd)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"{broken", "not_json"),
        (b"[1]", "not_control"),
        (b'{"action":"explode","machine":"vm-1"}', "not_control"),
        (b'{"action":"feedback","machine":"vm-1"}', "not_control"),
        (b'{"action":"reset","series":"*"}', "no_machine"),
        (b'{"action":"reset","series":"*","machine":"vm-1"} x', "not_control"),
    ],
)
def test_what_is_no_control_event_is_rejected(decode, value, code):
    [[row]] = decode("control_json", [value])
    assert (row.error, row.events) == (code, None)
