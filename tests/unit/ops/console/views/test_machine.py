import re

import pytest

from tests.unit.ops.console.sources import ESCAPED, MARKUP
from tests.unit.ops.console.views.test_incidents import hits

END = 1_790_000_000_000
STEP = 180_000  # 6 h in 120
START = END // STEP * STEP - 119 * STEP
NOVELTY = {
    "machine": "vm-1",
    "verdict": "anomaly",
    "series": "cpu",
    "started": END - 10 * STEP,
    "score": 12.0,
    "observed": 97.0,
    "expected_low": 10.0,
    "expected_high": 20.0,
    "text": "cpu on vm-1 is 97",
}
RESET = {"action": "reset", "machine": "vm-*", "series": "cpu*", "by": "ada", "time": END - STEP}


def series(name, *values, kind="metric", unit="%"):
    """What Elasticsearch says of a series that has such means, steps apart."""
    time = [
        {"key": START + step * STEP, "mean": {"value": mean}, "count": {"value": 7.0}, "low": {"value": 1.0}}
        | {"high": {"value": 99.0}}
        for step, mean in values
    ]
    described = {"kind": {"buckets": [{"key": kind}]}, "unit": {"buckets": [{"key": unit}] if unit else []}}
    return {"key": name, "time": {"buckets": time}, **described}


def statistics(*found, role="amf"):
    newest = {"machine": "vm-1", "@timestamp": END, "role": role}
    length = {"key": 10.0, "series": {"buckets": list(found)}}
    return hits(("s", newest), aggregations={"length": {"buckets": [length]}})


@pytest.fixture
def one(sources):
    log = series("log ssh", (5, None), kind="log", unit=None)
    sources.found = {
        "statistics": statistics(series("a.disk", (0, 2.0)), series("cpu", (5, 10.0), (6, 12.0), (20, 90.0)), log),
        "novelties": hits(("n1", NOVELTY)),
    }
    sources.controls = [RESET, {"action": "retire", "machine": "vm-2", "by": "bob", "time": END}]


def test_series_with_novelties_are_first_with_their_values(browser, one):
    view = browser.get("/api/v1/fleet/vm-1?span=6h").json()
    assert [found["series"] for found in view["series"]] == ["cpu", "a.disk", "log ssh"]
    assert (view["facts"], view["start"], view["step"]) == ({"role": "amf"}, START, STEP)
    cpu = view["series"][0]
    assert (cpu["unit"], cpu["statistic"], cpu["window_seconds"]) == ("%", "mean", 10.0)
    assert cpu["points"][0] == {"time": START + 5 * STEP, "value": 10.0, "low": 1.0, "high": 99.0}


def test_log_lines_are_counted(browser, one):
    (_, _, log) = browser.get("/api/v1/fleet/vm-1?span=6h").json()["series"]
    assert (log["statistic"], [point["value"] for point in log["points"]]) == ("count", [7.0])
    assert "lines in 10 s" in browser.get("/fleet/vm-1").text


def test_a_novelty_is_drawn_where_it_lasts_with_what_was_expected(browser, one):
    page = browser.get("/fleet/vm-1?span=6h").text
    marks = re.findall(r'<rect class="(novel|expected)"[^>]*><title>([^<]*)', page)
    assert marks == [("novel", "cpu on vm-1 is 97"), ("expected", "cpu on vm-1 is 97")]
    assert "10 to 20" in page


def test_the_page_of_one_series_has_only_this(browser, sources, one):
    view = browser.get("/api/v1/fleet/vm-1?series=cpu").json()
    assert ([found["series"] for found in view["series"]], len(view["names"])) == (["cpu"], 3)
    filtered = [query["query"]["bool"]["filter"] for kind, query in sources.searches if kind == "novelties"]
    assert filtered == [[{"term": {"machine": "vm-1"}}, {"term": {"series": "cpu"}}]]


def test_control_history_is_of_this_machine(browser, one):
    (said,) = browser.get("/api/v1/fleet/vm-1").json()["control"]
    assert (said["by"], said["action"], said["time"]) == ("ada", "reset", END - STEP)


def test_without_kafka_the_rest_is_shown(browser, sources, one):
    sources.down = {"Kafka"}
    view = browser.get("/api/v1/fleet/vm-1").json()
    assert (view["control"], view["down"]) == (None, [{"source": "Kafka", "reason": "does not answer"}])
    assert len(view["series"]) == 3
    assert "<strong>Kafka</strong>: does not answer" in browser.get("/fleet/vm-1").text


def test_without_elasticsearch_it_is_down(browser, sources):
    sources.down = {"Elasticsearch"}
    assert browser.get("/fleet/vm-1").status_code == 503


def test_a_machine_that_is_not_there_is_said(browser):
    page = browser.get("/fleet/none")
    assert (page.status_code, "There is no machine none." in page.text) == (404, True)


def test_a_machine_without_statistics_has_its_novelties(browser, sources):
    sources.found = {"novelties": hits(("n1", NOVELTY | {"ended": END}))}
    page = browser.get("/fleet/vm-1").text
    assert "There are no statistics in this span." in page
    assert "cpu on vm-1 is 97" in page


def test_what_telemetry_and_people_say_is_escaped(browser, sources):
    sources.found = {
        "statistics": statistics(series(MARKUP, (0, 1.0), unit=MARKUP), role=MARKUP),
        "novelties": hits(("n1", NOVELTY | {"series": MARKUP, "text": MARKUP, "verdict": MARKUP})),
    }
    sources.controls = [dict.fromkeys(("action", "by", "series", "rule"), MARKUP) | {"machine": "*", "time": END}]
    page = browser.get("/fleet/%3Cscript%3E").text
    assert ESCAPED in page
    assert "<script>" not in page
