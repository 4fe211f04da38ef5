"""Each alert fires when its fault is there and ends when it is over, as Prometheus itself computes it (promtool)."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple, get_args

import pytest
import yaml

from connectors.sinks.elasticsearch_errors import Cause
from tests.charts.tools import CHART

RULES = CHART / "files" / "rules.yml"
METRICS = Path("docs/reference/metrics.md")
FOREIGN = {"up", "kube_pod_status_phase"}  # Prometheus' own, kube-state-metrics'


class Fault(NamedTuple):
    """Series, sampled each minute, in which a fault comes and goes; minutes with and without its alert."""

    series: dict[str, str]
    fires: int
    ended: int


GOES_ON = "0+60x200"  # a clock, or a counter of one a second


HOUR = "3600x30"  # for half an hour
FAULTS = {
    "KappaJobDown": Fault({'up{job="kappa", instance="detector"}': "1x10 0x10 1x30"}, 15, 30),
    "KappaJobAbsent": Fault(
        {
            'kappa_lag_records{job="enrichment", topic="t", partition="0"}': "0x200",
            'kappa_lag_records{job="statistics", topic="t", partition="0"}': "0x200",
            'kappa_lag_records{job="detector", topic="t", partition="0"}': "0x200",
            'kappa_lag_records{job="indexer", topic="t", partition="0"}': "0 0 0 _x30 0x60",
        },
        30,
        60,
    ),
    "KappaPodPending": Fault(
        {
            'kube_pod_status_phase{namespace="n", pod="kappa-detector-5f", phase="Pending"}': "0x5 1x20 0x30",
            'kube_pod_status_phase{namespace="n", pod="another", phase="Pending"}': "1x60",
        },
        20,
        40,
    ),
    "KappaNoProgress": Fault({'kappa_no_progress_seconds{job="detector", query="d"}': "0x5 0+60x20 0x30"}, 20, 40),
    "KappaStaleBatches": Fault(
        {
            'kappa_last_batch_timestamp_seconds{job="detector", query="d"}': "0+60x10 600x20 1920+60x60",
            'kappa_last_batch_timestamp_seconds{job="archive", query="a"}': "0x90",
        },
        25,
        40,
    ),
    "KappaWatermarkStands": Fault(
        {
            'kappa_event_time_seconds{job="enrichment"}': "0+60x10 600x30 2500+60x60",
            'kappa_input_rows_total{job="enrichment", query="e"}': GOES_ON,
        },
        35,
        60,
    ),
    "KappaEventTimeBehind": Fault({'kappa_event_time_lag_seconds{job="enrichment"}': "20x5 400x20 20x60"}, 20, 40),
    "KappaSiteBehind": Fault(
        {
            'kappa_event_time_seconds{job="statistics"}': GOES_ON,
            'kappa_site_event_time_seconds{site="dc1"}': "0+60x20 1200x5 _x20 3000+60x100",  # and a new start
            'kappa_site_event_time_seconds{site="dc2"}': GOES_ON,
        },
        40,
        60,
    ),
    "KappaLagGrows": Fault({'kappa_lag_seconds{job="detector", topic="t"}': "0x10 400+60x60 0x60"}, 60, 90),
    "KappaDataWillBeLost": Fault(
        {
            'kappa_retention_headroom_seconds{job="detector", topic="t"}': "604800x5 20000-60x30 604800x60",
            'kappa_lag_seconds{job="detector", topic="t"}': "0x5 584800+60x30 0x60",
            'kappa_retention_headroom_seconds{job="rules", topic="short"}': HOUR,
            'kappa_lag_seconds{job="rules", topic="short"}': "5x30",
        },
        20,
        50,
    ),
    "KappaSlowBatches": Fault(
        {
            'kappa_batch_seconds_bucket{job="detector", query="d", le="60"}': "0x40 0+60x100",
            'kappa_batch_seconds_bucket{job="detector", query="d", le="120"}': "0+60x140",
            'kappa_batch_seconds_bucket{job="detector", query="d", le="+Inf"}': "0+60x140",
        },
        30,
        80,
    ),
    "KappaDiskFull": Fault(
        {
            'kappa_disk_free_bytes{instance="i", folder="/f"}': "50x5 9x20 50x30",
            'kappa_disk_size_bytes{instance="i", folder="/f"}': "100x60",
        },
        20,
        40,
    ),
    "KappaCertificateExpires": Fault(
        {'kappa_certificate_expires_timestamp_seconds{file="ca.crt"}': "1300000x5 1000000x10 9000000x30"}, 10, 30
    ),
    "KappaRejects": Fault(
        {
            'kappa_output_rows_total{job="enrichment", target="events.rejected"}': "0+60x40 2400x60",
            'kappa_input_rows_total{job="enrichment", query="e"}': "0+3000x100",
        },
        35,
        70,
    ),
    "KappaLate": Fault(
        {
            'kappa_output_rows_total{job="enrichment", target="events.late"}': "0+60x40 2400x60",
            'kappa_input_rows_total{job="enrichment", query="e"}': "0+3000x100",
        },
        35,
        70,
    ),
    "KappaAlarmBudgetSpent": Fault(
        {
            'kappa_noted_rows_total{job="detector", note="alert_anomaly"}': "0x5 20x2000",
            'kappa_setting{job="detector", setting="alarms_per_day"}': "5x2000",
        },
        60,
        1500,
    ),
    "KappaApplicationRefused": Fault({'kappa_application_refused{application="detector"}': "0x5 1x5 0x20"}, 8, 20),
    "KappaIndexerLostRecords": Fault(
        {'kappa_indexer_lost_records_total{topic="novelties", partition="0"}': "0x5 7x120"}, 30, 100
    ),
    "KappaFoldRejects": Fault(
        {
            'kappa_noted_rows_total{job="detector", note="not_json"}': "0x5 3x60",
            'kappa_noted_rows_total{job="detector", note="alert_anomaly"}': GOES_ON,
        },
        8,
        30,
    ),
    "KappaFoldLate": Fault({'kappa_noted_rows_total{job="statistics", note="late"}': "0x5 3+1x20 23x60"}, 20, 60),
    "KappaNotificationsFail": Fault({'kappa_notifier_failing{channel="mail"}': "0x5 1x30 0x40"}, 30, 60),
    "KappaElasticsearchWaits": Fault({'kappa_indexer_waiting{cause="full"}': "0x5 1x20 0x30"}, 20, 40),
    "KappaIndicesNotAged": Fault({"kappa_indexer_ageing_failed": "0x5 1x40 0x30"}, 30, 60),
}
# In which no alert may fire: dead letters and late records of a small share, a lag that is read.
QUIET = {
    'up{job="kappa", instance="all"}': "1x60",
    **{f'kappa_lag_records{{job="{job}", topic="t", partition="0"}}': "5x60" for job in ("enrichment", "statistics")},
    'kappa_lag_records{job="detector", topic="t", partition="0"}': "5x60",
    'kappa_lag_seconds{job="detector", topic="t"}': "0 400 0 200 0x60",
    'kappa_output_rows_total{job="enrichment", target="events.rejected"}': "0+10x60",
    'kappa_output_rows_total{job="enrichment", target="events.late"}': "0+10x60",
    'kappa_input_rows_total{job="enrichment", query="e"}': "0+3000x60",
}


def _rules():
    return yaml.safe_load(RULES.read_text())["groups"][0]["rules"]


def _firing(alert, minute, expected, labels=""):
    samples = [{"labels": "{}", "value": 1}] if expected else []
    return {
        "expr": f'count(ALERTS{{alertname="{alert}", alertstate="firing"{labels}}})',
        "eval_time": f"{minute}m",
        "exp_samples": samples,
    }


def _test(alert):
    fault = FAULTS[alert]
    return {
        "name": alert,
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in fault.series.items()],
        "promql_expr_test": [
            _firing(alert, 1, False),
            _firing(alert, fault.fires, True),
            _firing(alert, fault.ended, False),
        ],
    }


def test_every_alert_has_a_fault():
    assert [rule["alert"] for rule in _rules()] == [*FAULTS]


needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None, reason="promtool is not there; Debian's package prometheus has it"
)


@pytest.mark.parametrize("alert", FAULTS)
@needs_promtool
def test_an_alert_fires_and_ends(alert, tmp_path):
    _check(_test(alert), tmp_path)


@pytest.mark.parametrize("cause", get_args(Cause))
@needs_promtool
def test_an_indexer_that_waits_is_heard_with_its_cause(cause, tmp_path):
    """With an API key that has expired or was revoked it is `forbidden`; a process shows the other causes as 0."""
    alert = "KappaElasticsearchWaits"
    others = {f'kappa_indexer_waiting{{cause="{one}"}}': "0x60" for one in get_args(Cause) if one != cause}
    series = others | {f'kappa_indexer_waiting{{cause="{cause}"}}': "0x5 1x20 0x30"}
    test = {
        "interval": "1m",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            _firing(alert, 5, False),
            _firing(alert, 20, True, f', severity="critical", cause="{cause}"'),
            _firing(alert, 20, False, f', cause!="{cause}"'),
            _firing(alert, 40, False),
        ],
    }
    _check(test, tmp_path)


@needs_promtool
def test_in_quiet_times_none_fires(tmp_path):
    series = [{"series": name, "values": values} for name, values in QUIET.items()]
    none = {"expr": 'ALERTS{alertstate="firing"}', "eval_time": "50m", "exp_samples": []}
    _check({"interval": "1m", "input_series": series, "promql_expr_test": [none]}, tmp_path)


def _check(test, tmp_path):
    file = tmp_path / "test.yml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "tests": [test]}))
    checked = subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_alerts_ask_only_for_metrics_that_there_are():
    known = set(re.findall(r"^\| `(\w+)`", METRICS.read_text(), re.MULTILINE)) | FOREIGN
    for rule in _rules():
        asked = set(re.findall(r"\b(kappa_\w+|up|kube_\w+)\b", rule["expr"]))
        assert asked
        assert {name.removesuffix("_bucket") for name in asked} <= known, rule["alert"]


def test_every_alert_has_its_runbook():
    sections = set(re.findall(r"^## (\w+)$", Path("docs/how-to/runbooks.md").read_text(), re.MULTILINE))
    assert sections == {*FAULTS}
    for rule in _rules():
        assert rule["annotations"]["runbook_url"].endswith(f"runbooks.md#{rule['alert'].lower()}")
