"""Grafana can't run here: its dashboard and the alerts use metrics that exist; `make test-compose` runs the queries."""

import json
import re
from itertools import combinations
from pathlib import Path

import pytest
import yaml
from prometheus_client import REGISTRY

import jobs.indexer.indexer
import jobs.notifier.notifier
import jobs.runtime.metrics
import jobs.runtime.surroundings  # noqa: F401 they register their metrics

GRAFANA = Path("infra/grafana")
DASHBOARDS = sorted(Path("charts/kappa/files/dashboards").glob("*.json"))
SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count")}


def _known():
    for family in REGISTRY.collect():
        for suffix in SUFFIXES.get(family.type, ("",)):
            yield family.name + suffix


def _used(expression):
    return set(re.findall(r"\bkappa_\w+", expression))


def _targets(dashboard):
    return [target for panel in dashboard["panels"] for target in panel["targets"]]


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_uses_metrics_that_exist_and_the_provisioned_source(path):
    dashboard = json.loads(path.read_text())
    sources = yaml.safe_load((GRAFANA / "provisioning/datasources/prometheus.yml").read_text())["datasources"]
    _check_targets(dashboard, {source["uid"] for source in sources})


def _check_targets(dashboard, sources):
    assert all(panel["targets"] for panel in dashboard["panels"]) and _targets(dashboard)
    used = set().union(*(_used(target["expr"]) for target in _targets(dashboard)))
    assert used and used <= set(_known())
    for target in _targets(dashboard):
        assert target["datasource"]["uid"] in sources


@pytest.mark.parametrize(
    "panels",
    [
        [],
        [{"targets": []}],
        [{"targets": [{"expr": "up", "datasource": {"uid": "here"}}]}],
        [{"targets": [{"expr": "kappa_nothing", "datasource": {"uid": "here"}}]}],
        [{"targets": [{"expr": "kappa_input_rows_total", "datasource": {"uid": "elsewhere"}}]}],
    ],
    ids=["no panel", "an empty panel", "no metric of ours", "an unknown metric", "an unknown source"],
)
def test_a_dashboard_that_shows_nothing_is_found(panels):
    with pytest.raises(AssertionError):
        _check_targets({"panels": panels}, {"here"})


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_have_names_of_their_own_and_do_not_overlap(path):
    panels = json.loads(path.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels) > 5
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        below = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or below


def test_alerts_use_metrics_that_exist():
    rules = yaml.safe_load(Path("charts/kappa/files/rules.yml").read_text())["groups"][0]["rules"]
    used = set().union(*(_used(rule["expr"]) for rule in rules))
    assert used and used <= set(_known())


def test_compose_scrapes_every_job_of_both_profiles():
    scraped = yaml.safe_load(Path("infra/prometheus/prometheus.yml").read_text())["scrape_configs"][0]
    services = {
        name
        for profile in ("standard", "small")
        for name in yaml.safe_load(Path(f"infra/docker/jobs-{profile}.yml").read_text())["services"]
    }
    assert set(scraped["dns_sd_configs"][0]["names"]) == services
