"""/metrics and /healthz, and how a micro-batch changes them."""

import json
import urllib.error
import urllib.request

import numpy as np
import pytest
from prometheus_client import REGISTRY

from infra.errors import UserError
from jobs.runtime import metrics
from jobs.runtime.metrics import MetricsServer, observe_progress, observe_watermark, observe_write
from jobs.runtime.queryable import InvalidQuestionError, NotHereError, NotKnownError
from jobs.runtime.settings import Settings

PROGRESS = {
    "batchId": 3,
    "numInputRows": 40,
    "inputRowsPerSecond": 20.0,
    "processedRowsPerSecond": 80.0,
    "durationMs": {"triggerExecution": 1_500},
    "stateOperators": [
        {"numRowsTotal": 4, "memoryUsedBytes": 1_000},
        {"numRowsTotal": 1, "memoryUsedBytes": 500},
    ],
}


@pytest.fixture
def reasons():
    """Why the job is not healthy: empty, it is."""
    return []


@pytest.fixture
def server(reasons):
    with MetricsServer(Settings(metrics_port=0), lambda: reasons[0] if reasons else None) as server:
        yield server


def get(server, path):
    try:
        with urllib.request.urlopen(server.url.removesuffix("/metrics") + path, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def sample(name, **labels):
    return REGISTRY.get_sample_value(name, labels)


def test_a_job_is_healthy_until_a_query_is_dead(server, reasons):
    assert get(server, "/healthz") == (200, "ok\n")
    reasons.append("not running: statistics")
    assert get(server, "/healthz") == (503, "not running: statistics\n")


def test_what_is_healthy_may_not_be_ready_yet():
    with MetricsServer(Settings(metrics_port=0), lambda: None, readiness=lambda: "no batch committed yet") as server:
        assert get(server, "/healthz") == (200, "ok\n")
        assert get(server, "/readyz") == (503, "no batch committed yet\n")


def test_metrics_are_in_prometheus_text(server):
    observe_write("written", {"events": 12}, {"unknown_machine": 3}, 0)
    status, text = get(server, "/metrics?name=x")
    assert status == 200
    assert 'kappa_output_rows_total{job="written",target="events"} 12.0' in text.splitlines()
    assert 'kappa_noted_rows_total{job="written",note="unknown_machine"} 3.0' in text.splitlines()


def test_a_port_that_is_taken_is_named(server):
    port = int(server.url.split(":")[2].split("/")[0])
    with pytest.raises(UserError, match=f"KAPPA_METRICS_PORT={port}: Address already in use; choose another"):
        MetricsServer(Settings(metrics_port=port), lambda: None)


def test_another_path_is_not_found(server):
    assert get(server, "/")[0] == 404


class Answering:
    """Answers by what is asked for."""

    paths = ("/state",)

    def answer(self, path, arguments):
        errors = {"none": NotKnownError, "": InvalidQuestionError, "elsewhere": NotHereError}
        if error := errors.get(arguments.get("machine", "")):
            raise error("because")
        return {"of": arguments["machine"], "value": np.float64(0.5)}


@pytest.mark.parametrize(
    ("query", "status", "answer"),
    [
        ("?machine=vm%2D1&series=a%7Bb%3D1%7D", 200, {"of": "vm-1", "value": 0.5}),
        ("?machine=none", 404, {"error": "because"}),
        ("", 400, {"error": "because"}),
        ("?machine=elsewhere", 503, {"error": "because"}),
    ],
)
def test_what_is_asked_of_the_state_is_answered_as_json(query, status, answer):
    with MetricsServer(Settings(metrics_port=0), lambda: None, Answering()) as server:
        found = get(server, f"/state{query}")
        assert (found[0], json.loads(found[1])) == (status, answer)
        assert get(server, "/windows") == (404, "there are /metrics, /healthz, /readyz, /state\n")


def test_a_batch_shows_its_rates_and_state():
    observe_progress("job-p", "query-p", PROGRESS)
    observe_progress("job-p", "query-p", PROGRESS)
    of_query = {"job": "job-p", "query": "query-p"}
    assert sample("kappa_input_rows_total", **of_query) == 80
    assert sample("kappa_processed_rows_per_second", **of_query) == 80.0
    assert sample("kappa_batch_seconds_sum", **of_query) == 3.0
    assert sample("kappa_state_rows", **of_query) == 5
    assert sample("kappa_state_bytes", **of_query) == 1_500


def test_written_rows_and_skipped_tasks_add_up():
    for skipped in (0, 3):
        observe_write("job-w", {"events": 5, "events.late": 1}, {}, skipped)
    assert sample("kappa_output_rows_total", job="job-w", target="events") == 10
    assert sample("kappa_output_rows_total", job="job-w", target="events.late") == 2
    assert sample("kappa_skipped_tasks_total", job="job-w") == 3


def test_each_site_has_its_newest_event_time_and_no_more_sites_are_shown_than_metrics_bear(monkeypatch):
    monkeypatch.setattr(metrics, "MOST_SITES", len(metrics._SITES) + 2)
    metrics.observe_sites({"dc1": 60_000, "dc2": 50_000})
    metrics.observe_sites({"dc1": 70_000, "made up": 90_000})
    assert sample("kappa_site_event_time_seconds", site="dc1") == 70
    assert sample("kappa_site_event_time_seconds", site="dc2") == 50
    assert sample("kappa_site_event_time_seconds", site="made up") is None


def test_the_lag_in_event_time_goes_on_growing_without_a_watermark():
    observe_watermark("job-t", 1_760_000_000_000)
    assert sample("kappa_event_time_seconds", job="job-t") == 1_760_000_000
    first = sample("kappa_event_time_lag_seconds", job="job-t")
    assert sample("kappa_event_time_lag_seconds", job="job-t") > first > 0
