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


def of_windows(**aggregations):
    return hits(aggregations={"length": {"buckets": [{"key": 10.0, **aggregations}]}})


@pytest.fixture
def statistics(sources):
    """Makes Elasticsearch answer with the statistics of a machine, and of its peers."""

    def given(*found, role="amf", peers=(), templates=()):
        newest = {"machine": "vm-1", "@timestamp": END, "role": role}
        names = {"series": {"buckets": [{"key": one["key"]} for one in found]}}

        def search(kind, **query):
            sources._ask("Elasticsearch")
            sources.searches.append((kind, query))
            if kind != "statistics":
                return sources.found.get(kind, hits())
            if "aggs" not in query:
                return hits(("s", newest)) if found else hits()
            if "series" in query["aggs"]:
                return hits(aggregations=names)
            asked = query["aggs"]["length"]["aggs"]
            if "machine" in asked:
                return of_windows(machine={"buckets": list(peers)})
            if "lines" in asked["series"]["aggs"]:
                return of_windows(series={"buckets": list(templates)})
            wanted = [one["terms"]["series"] for one in query["query"]["bool"]["filter"] if "terms" in one]
            shown = [one for one in found if not wanted or one["key"] in wanted[0]]
            return of_windows(series={"buckets": shown})

        sources.search = search

    return given


@pytest.fixture
def one(sources, statistics):
    log = series("log ssh", (5, None), kind="log", unit=None)
    line = {"key": "log ssh", "lines": {"value": 70.0}, "newest": {"value": float(END)}, "severity": {"value": 13.0}}
    found = series("a.disk", (0, 2.0)), series("cpu", (5, 10.0), (6, 12.0), (20, 90.0)), log
    peers = series("vm-1", (5, 10.0)), series("vm-9", (5, 50.0))
    sources.found = {"novelties": hits(("n1", NOVELTY))}
    statistics(*found, peers=peers, templates=[line])
    sources.controls = [RESET, {"action": "retire", "machine": "vm-2", "by": "bob", "time": END}]


def test_series_with_novelties_are_first_with_their_values(browser, one):
    view = browser.get("/api/v1/fleet/vm-1?span=6h").json()
    assert [found["series"] for found in view["series"]] == ["cpu", "a.disk", "log ssh"]
    assert (view["facts"], view["start"], view["step"]) == ({"role": "amf"}, START, STEP)
    cpu = view["series"][0]
    assert (cpu["unit"], cpu["statistic"], cpu["window_seconds"]) == ("%", "mean", 10.0)
    assert (len(cpu["values"]), cpu["values"][4:8]) == (120, [None, 10.0, 12.0, None])
    assert (cpu["lows"][5], cpu["highs"][5], cpu["lows"][4]) == (1.0, 99.0, None)


def test_log_lines_are_counted(browser, one):
    (_, _, log) = browser.get("/api/v1/fleet/vm-1?span=6h").json()["series"]
    assert (log["statistic"], log["values"][5], "lows" in log) == ("count", 7.0, False)
    assert "lines in 10 s" in browser.get("/fleet/vm-1?span=6h").text


def test_log_templates_are_listed_with_their_lines_and_severity(browser, one):
    (template,) = browser.get("/api/v1/fleet/vm-1").json()["templates"]
    assert template == {"template": "log ssh", "lines": 70.0, "newest": END, "severity": 13.0}
    assert "<td>warning</td>" in browser.get("/fleet/vm-1").text


def test_a_page_has_a_chart_for_each_series_in_words_too(browser, one):
    page = browser.get("/fleet/vm-1?span=6h").text
    assert re.findall(r'data-series="([^"]*)"', page) == ["cpu", "a.disk", "log ssh"]
    assert 'aria-label="cpu: 10 to 90; 1 novelties"' in page
    assert "10 to 20" in page


def test_the_page_of_one_series_has_only_this_and_its_peers(browser, sources, one):
    view = browser.get("/api/v1/fleet/vm-1?series=cpu").json()
    assert ([found["series"] for found in view["series"]], len(view["names"])) == (["cpu"], 3)
    filtered = [query["query"]["bool"]["filter"] for kind, query in sources.searches if kind == "novelties"]
    assert filtered == [[{"term": {"machine": "vm-1"}}, {"term": {"series": "cpu"}}]]
    assert (view["peers"]["kind"], view["peers"]["name"]) == ("role", "amf")
    peers = {peer["machine"]: peer["values"][5] for peer in view["peers"]["machines"]}
    assert peers == {"vm-1": 10.0, "vm-9": 50.0}
    assert {"term": {"role": "amf"}} in sources.searches[-1][1]["query"]["bool"]["filter"]
    assert "on 2 machines of role amf" in browser.get("/fleet/vm-1?series=cpu").text


def test_a_novelty_is_shown_with_its_contributors_on_one_axis_around_its_time(browser, sources, one):
    share = {"series": "a.disk", "share": 0.25, "observed": 3.0, "expected_low": 1.0, "expected_high": 2.0}
    sources.found = {"novelties": hits(("n1", NOVELTY | {"contributors": [share], "ended": END - 9 * STEP}))}
    view = browser.get("/api/v1/fleet/vm-1?novelty=n1").json()
    assert [found["series"] for found in view["series"]] == ["cpu", "a.disk"]
    assert view["start"] <= NOVELTY["started"] - 1_750_000 < NOVELTY["started"] < view["end"]
    page = browser.get("/fleet/vm-1?novelty=n1").text
    assert '<meter min="0" max="1" value="0.25"' in page
    assert '<tr id="n-n1" aria-current="true">' in page


def test_control_history_is_of_this_machine(browser, one):
    (said,) = browser.get("/api/v1/fleet/vm-1").json()["control"]
    assert (said["by"], said["action"], said["time"]) == ("ada", "reset", END - STEP)


def test_without_kafka_the_rest_is_shown(browser, sources, one):
    sources.down = {"Kafka"}
    view = browser.get("/api/v1/fleet/vm-1").json()
    assert (view["control"], view["down"]) == (None, [{"source": "Kafka", "reason": "does not answer"}])
    assert len(view["series"]) == 3
    assert "<strong>Kafka</strong>: does not answer" in browser.get("/fleet/vm-1").text


STATE = {
    "judged_until_unix_nano": END * 1_000_000,
    "first_seen_unix_nano": START * 1_000_000,
    "window_seconds": 10.0,
    "longest_gap_windows": 3,
    "calm_score": None,
    "rules": {"aa11": {"machine": "vm-*"}},
    "series": [
        {
            "series": "cpu",
            "kind": "metric",
            "unit": "%",
            "phase": "episode",
            "expected": {"expected": 15.0, "low": 10.5, "high": 19.5},
            "season": [{"hour": 3, "expected": 12.0, "low": 9.0, "high": 14.0}],
            "last_seen_unix_nano": END * 1_000_000,
            "quiet_until_unix_nano": (END + STEP) * 1_000_000,
            "called_normal": [1.0, 2.0],
            "figures": {"seen": 4711, "mu": 15.0},
        }
    ],
}


def test_what_the_running_detector_holds_is_shown(browser, sources, one):
    sources.answers = {"/state": STATE, "/windows": {"series": []}}
    view = browser.get("/api/v1/fleet/vm-1?series=cpu").json()
    assert (view["state"], view["open"]) == (STATE, {"series": []})
    page = browser.get("/fleet/vm-1?series=cpu").text
    for said in ("15, 99 % between 10.5 and 19.5 %", "<dd>1 to 2</dd>", "4,711 windows of 10 s", 'id="season"'):
        assert said in page
    whole = browser.get("/fleet/vm-1").text
    assert "1; 1 surprised or changed, 1 in or after a cooldown" in whole
    assert "1 concern this machine" in whole


def test_without_running_jobs_the_rest_is_shown(browser, sources, one):
    sources.down = {"detector", "statistics"}
    view = browser.get("/api/v1/fleet/vm-1").json()
    assert (view["state"], view["open"], len(view["series"])) == (None, None, 3)
    assert {one["source"] for one in view["down"]} == {"detector", "statistics"}


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


def test_what_telemetry_and_people_say_is_escaped(browser, sources, statistics):
    line = {"key": MARKUP, "lines": {"value": 1.0}, "newest": {"value": 1.0}, "severity": {"value": None}}
    statistics(series(MARKUP, (0, 1.0), unit=MARKUP), role=MARKUP, templates=[line], peers=[series(MARKUP, (0, 1.0))])
    share = {"series": MARKUP, "unit": MARKUP, "share": 1.0, "observed": 1.0}
    contributors = [share | {"expected_low": None, "expected_high": None}]
    hostile = dict.fromkeys(("series", "text", "verdict", "unit"), MARKUP) | {"contributors": contributors}
    sources.found = {"novelties": hits(("n1", NOVELTY | hostile))}
    sources.controls = [dict.fromkeys(("action", "by", "series", "rule"), MARKUP) | {"machine": "*", "time": END}]
    for query in ("", "?novelty=n1", "?series=cpu"):
        page = browser.get(f"/fleet/%3Cscript%3E{query}").text
        assert ESCAPED in page
        assert "<script>" not in page
