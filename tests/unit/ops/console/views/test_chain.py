import re
import time
from pathlib import Path

import pytest

from ops.console.views import health, sites
from tests.unit.ops.console.sources import ESCAPED, MARKUP, sample

RUNBOOKS = Path(__file__).parents[5] / "docs/how-to/runbooks.md"


def row_of(browser, query):
    (row,) = [row for row in browser.get("/api/v1/chain").json()["queries"] if row["query"] == query]
    return row


def test_a_query_has_lag_and_what_its_job_says_of_it(browser, sources):
    sources.lag = {"statistics": 12}
    sources.said["statistics"] = [
        sample("kappa_batch_seconds_sum", 30.0, job="statistics", query="statistics"),
        sample("kappa_batch_seconds_count", 12.0, job="statistics", query="statistics"),
        sample("kappa_last_batch_timestamp_seconds", time.time() - 8, job="statistics", query="statistics"),
        sample("kappa_event_time_lag_seconds", 21.0, job="statistics"),
        sample("kappa_output_rows_total", 3.0, job="statistics", target="events.rejected"),
        sample("kappa_output_rows_total", 4.0, job="statistics", target="events.late"),
        sample("kappa_output_rows_total", 99.0, job="statistics", target="statistics"),
    ]
    row = row_of(browser, "statistics")
    metrics = row["metrics"]
    assert (row["lag"], metrics["batch_seconds"], metrics["event_time_lag"]) == (12, 2.5, 21.0)
    assert (metrics["rejected"], metrics["late"]) == (3.0, 4.0)
    assert 8 <= row["last_batch_age"] < 60
    assert row["problems"] == []


def test_each_site_has_what_it_has_sent_and_one_that_is_cut_off_is_wrong(browser, sources):
    sources.said["statistics"] = [
        sample("kappa_event_time_seconds", 1_000_000.0, job="statistics"),
        sample("kappa_event_time_seconds", 9_000_000.0, job="another"),
        sample("kappa_site_event_time_seconds", 1_000_005.0, site="dc1"),
        sample("kappa_site_event_time_seconds", 999_690.0, site="dc2"),
    ]
    found = browser.get("/api/v1/chain").json()
    cut, well = found["sites"]
    assert (cut["site"], cut["newest"], cut["behind"]) == ("dc2", 999_690_000, 310)
    assert cut["problems"][0]["alert"] == "KappaSiteBehind" and found["wrong"] >= 1
    assert (well["site"], well["behind"], well["problems"]) == ("dc1", 0, [])
    page = browser.get("/chain").text
    assert 'href="/fleet?site=dc2"' in page
    assert page.index("dc2") < page.index("dc1")


@pytest.mark.parametrize(
    ("said", "alert"),
    [
        (sample("kappa_event_time_lag_seconds", 301.0, job="indexer"), "KappaEventTimeBehind"),
        (sample("kappa_indexer_waiting", 1.0), "KappaElasticsearchWaits"),
        (sample("kappa_indexer_lost_records_total", 2.0, topic="novelties"), "KappaIndexerLostRecords"),
        (sample("kappa_application_refused", 1.0, application="indexer"), "KappaApplicationRefused"),
    ],
)
def test_what_is_wrong_leads_to_its_runbook(browser, sources, said, alert):
    sources.said["indexer"] = [said]
    (problem,) = row_of(browser, "indexer")["problems"]
    assert problem["runbook"].endswith(f"runbooks.md#{alert.lower()}")
    assert f'href="{problem["runbook"]}"' in browser.get("/chain").text


def test_every_runbook_that_a_problem_names_is_a_section():
    texts = [Path(module.__file__).read_text() for module in (health, sites)]
    named = {name for text in texts for name in re.findall(r'"(Kappa[A-Za-z]+)"', text)}
    assert named >= {"KappaJobDown", "KappaSiteBehind", "KappaLagGrows", "KappaSlowBatches"}
    assert [name for name in named if f"\n## {name}\n" not in RUNBOOKS.read_text()] == []


def test_a_broker_that_is_down_leaves_what_the_jobs_say(browser, sources):
    sources.down = {"Kafka"}
    sources.said["detector"] = [sample("kappa_event_time_lag_seconds", 5.0, job="detector")]
    page = browser.get("/chain")
    assert page.status_code == 200
    assert "<strong>Kafka</strong>: does not answer" in page.text
    row = row_of(browser, "detector")
    assert (row["lag"], row["metrics"]["event_time_lag"]) == (None, 5.0)


def test_a_job_that_is_down_leaves_the_lag(browser, sources):
    sources.down, sources.lag = {"detector"}, {"detector": 20_000, "incidents": 0, "statistics": 1}
    assert [one["alert"] for one in row_of(browser, "detector")["problems"]] == ["KappaJobDown", "KappaLagGrows"]
    assert [one["alert"] for one in row_of(browser, "incidents")["problems"]] == ["KappaJobDown"]
    assert row_of(browser, "statistics")["problems"] == []


def test_the_graph_has_each_job_and_what_it_has_not_read(browser, sources):
    sources.lag = {row["query"]: 7 for row in browser.get("/api/v1/chain").json()["queries"]}
    page = browser.get("/chain").text
    assert ">enrichment</text>" in page
    assert ">7 behind</text>" in page
    assert 'class="edge"' in page


def test_what_a_server_says_is_escaped(browser, sources):
    sources.settings = sources.settings.model_copy(update={"generation": MARKUP})
    page = browser.get("/chain").text
    assert ESCAPED in page
    assert MARKUP not in page


def test_in_the_small_profile_one_process_speaks_for_every_job(browser, sources):
    sources.applications = ("all",)
    sources.said = {"all": [sample("kappa_event_time_lag_seconds", 5.0, job="detector")]}
    sources.lag = {"detector": 0}
    assert row_of(browser, "detector")["metrics"]["event_time_lag"] == 5.0
    assert row_of(browser, "statistics")["problems"] == []
