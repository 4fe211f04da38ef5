from connectors import otlp
from connectors.otlp import Instrument, LogLine

USER = Instrument("cpu", "1", attributes=(("state", "user"),))
IDLE = Instrument("cpu", "1", attributes=(("state", "idle"), ("cpu", "0")))
PACKETS = Instrument("packets", "{packet}", "sum", monotonic=True)


def test_a_series_is_its_name_and_its_sorted_attributes():
    assert [i.series for i in (USER, IDLE, PACKETS)] == ["cpu{state=user}", "cpu{cpu=0,state=idle}", "packets"]


def test_adjacent_points_of_a_metric_share_it():
    request = otlp.metrics({"host.name": "m"}, "s", [(USER, 0.5), (IDLE, 0.25), (PACKETS, 7)], 1, 2)
    (resource,) = request["resourceMetrics"]
    assert resource["resource"] == {"attributes": [{"key": "host.name", "value": {"stringValue": "m"}}]}
    cpu, packets = resource["scopeMetrics"][0]["metrics"]
    assert [point["asDouble"] for point in cpu["gauge"]["dataPoints"]] == [0.5, 0.25]
    assert packets == {
        "name": "packets",
        "unit": "{packet}",
        "sum": {
            "dataPoints": [{"startTimeUnixNano": "1", "timeUnixNano": "2", "asInt": "7"}],
            "aggregationTemporality": 2,
            "isMonotonic": True,
        },
    }


def test_a_log_line_keeps_all_it_has():
    line = LogLine(5, "hello", "WARN", 13, (("a", "b"),))
    request = otlp.logs({}, "s", [line])
    assert request["resourceLogs"][0]["scopeLogs"][0]["logRecords"] == [
        {
            "timeUnixNano": "5",
            "observedTimeUnixNano": "5",
            "severityNumber": 13,
            "severityText": "WARN",
            "body": {"stringValue": "hello"},
            "attributes": [{"key": "a", "value": {"stringValue": "b"}}],
        }
    ]
