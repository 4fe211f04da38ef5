import time
from threading import Event

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from connectors.host.collector import Collector, Settings
from infra.errors import UserError


class Broker:
    """Keeps what it gets; sets `stop` when there are as many records of each topic as wanted."""

    def __init__(self):
        self.log, self.flushed, self.stop, self.wanted = [], False, Event(), {}

    def send(self, topic, key, value, timestamp_ms, delivered=None):
        self.log.append((topic, key, value, timestamp_ms))
        if all(len(self.of(topic)) >= n for topic, n in self.wanted.items()):
            self.stop.set()

    def of(self, topic):
        return [record for record in self.log if record[0] == topic]

    def poll(self, seconds=0):
        pass

    def flush(self):
        self.flushed = True


def test_it_sends_its_metrics_as_otlp_at_each_interval():
    broker = Broker()
    broker.wanted = {"telemetry.otlp.metrics": 3}
    before = time.time_ns()
    collector = Collector(Settings("my-host", interval_s=0.2, journal=False), broker)
    collector.run(broker.stop)
    times = []
    for _, key, value, timestamp_ms in broker.log:
        (resource,) = Parse(value, ExportMetricsServiceRequest()).resource_metrics
        assert {a.key: a.value.string_value for a in resource.resource.attributes}["host.name"] == "my-host"
        assert key == b"my-host"
        metrics = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
        points = metrics["system.cpu.utilization"].gauge.data_points
        assert {point.time_unix_nano // 1_000_000 for point in points} == {timestamp_ms}
        assert metrics["system.network.io"].sum.is_monotonic
        times.append(points[0].time_unix_nano)
    assert before < times[0] < times[1] < times[2] < before + 10_000_000_000
    assert broker.flushed


def test_it_sends_log_lines_before_the_next_sample(tmp_path):
    path, broker = tmp_path / "app.log", Broker()
    path.touch()
    broker.wanted = {"telemetry.otlp.logs": 1}
    collector = Collector(Settings("my-host", interval_s=60, files=[path], journal=False), broker)
    path.write_text("ERROR one\ntwo\n")
    collector.run(broker.stop)
    ((_, key, value, _),) = broker.of("telemetry.otlp.logs")
    (resource,) = Parse(value, ExportLogsServiceRequest()).resource_logs
    found = [(r.body.string_value, r.severity_text) for r in resource.scope_logs[0].log_records]
    assert found == [("ERROR one", "ERROR"), ("two", "INFO")]
    assert key == b"my-host"
    assert collector.counts.lines == 2


def test_it_sends_the_last_lines_when_it_stops(tmp_path):
    path, broker = tmp_path / "app.log", Broker()
    path.touch()
    collector = Collector(Settings("my-host", interval_s=60, files=[path], journal=False), broker)
    path.write_text("last words\n")
    broker.stop.set()
    collector.run(broker.stop)
    assert [topic for topic, *_ in broker.log] == ["telemetry.otlp.logs"]
    assert broker.flushed


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Settings(machine=" "), "machine ' '"),
        (Settings(interval_s=0), "interval 0s: give at least 100ms"),
        (Settings(top=-1), "top -1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with pytest.raises(UserError, match=message):
        Collector(settings, Broker())


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(UserError, match="is no file that can be followed"):
        Collector(Settings(files=[tmp_path / "nothing.log"]), Broker())
