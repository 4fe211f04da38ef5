import json
import signal
import sys

from tests.integration.connectors.reading import own_topics, read_all, running, wait_for_records


def test_this_machine_streams_until_sigterm_and_every_point_that_it_counts_is_there(servers, tmp_path):
    path = tmp_path / "app.log"
    path.touch()
    command = [sys.executable, "-m", "ops.cli", "host", "--machine=me", "--interval=0.5"]
    with own_topics(servers.bootstrap) as prefix:
        command += [
            f"--bootstrap={servers.bootstrap}",
            f"--topic-prefix={prefix}",
            f"--file={path}",
            "--no-journal",
            "--json",
        ]
        metrics, logs = prefix + "telemetry.otlp.metrics", prefix + "telemetry.otlp.logs"
        with running(command) as process:
            wait_for_records(servers.bootstrap, metrics, 2)
            with path.open("a") as file:
                file.write("ERROR the disk is gone\n")
            (log,) = wait_for_records(servers.bootstrap, logs, 1)
            process.send_signal(signal.SIGTERM)
            output, _ = process.communicate(timeout=30)
        sent = read_all(servers.bootstrap, metrics)
    assert process.returncode == 0
    assert log.key() == b"me"
    (line,) = json.loads(log.value())["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert line["body"]["stringValue"] == "ERROR the disk is gone"
    points = [
        point
        for message in sent
        for metric in json.loads(message.value())["resourceMetrics"][0]["scopeMetrics"][0]["metrics"]
        for point in metric.get("gauge", metric.get("sum"))["dataPoints"]
    ]
    assert json.loads(output) == {"points": len(points), "lines": 1}
