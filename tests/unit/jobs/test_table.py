"""The table of jobs, what follows from it, and that compose, chart and Prometheus say the same."""

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
import yaml

from infra.contract.jobs import Job, JobTable, Topics
from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.table import JOBS

TOPICS = load_topics()
RUNNING = JOBS.enabled()


def test_table_and_map_fit():
    JOBS.check(TOPICS)


@pytest.mark.parametrize("job", JOBS.jobs, ids=lambda job: job.name)
def test_a_row_names_code_that_is_there(job):
    code = job.implementation()
    if job.uses_spark:
        code.check_settings(load_job_settings(job), TOPICS)
        assert {topic for read in code.sources(job, TOPICS).values() for topic in read} >= set(job.inputs(TOPICS))
    else:
        assert callable(code)


def test_who_follows_whom_is_read_off_the_topics():
    follow = {name: JOBS.with_followers(name, TOPICS, RUNNING) for name in RUNNING}
    assert follow["enrichment"] == ("enrichment", "statistics", "detector", "incidents", "archive", "indexer")
    assert follow["statistics"] == ("statistics", "detector", "incidents", "archive", "indexer")
    assert follow["detector"] == ("detector", "incidents", "archive", "indexer")
    assert follow["incidents"] == ("incidents", "archive", "indexer")


def test_the_order_of_rows_does_not_matter_to_the_graph():
    turned = JobTable(tuple(reversed(JOBS.jobs)))
    found = turned.with_followers("detector", TOPICS, RUNNING)
    assert set(found) == {"detector", "incidents", "archive", "indexer"}


def test_a_topic_that_nobody_writes_is_named():
    without = JobTable(tuple(job for job in JOBS if job.name != "incidents"))
    with pytest.raises(UserError, match="topic 'incidents': nobody writes it"):
        without.check(TOPICS)


def test_a_topic_that_the_map_lacks_is_named():
    odd = Job("odd", reads=("events",), writes=("oddities",), code="jobs.odd:FOLD")
    with pytest.raises(UserError, match="topic 'oddities': job odd uses it, but the map lacks it"):
        JobTable((*JOBS.jobs, odd)).check(TOPICS)


def test_a_map_of_version_0_1_0_is_refused_with_what_to_change():
    older = {**TOPICS.topics, "events": TOPICS["events"].model_copy(update={"written_by": ("enrichment",)})}
    with pytest.raises(UserError, match="topic 'events': written_by names the job enrichment: leave that out"):
        JOBS.check(TopicMap(older))


def test_an_optional_job_runs_only_where_it_is_named():
    optional = Job("extra", reads=("events",), writes=(), code="jobs.extra:FOLD", optional=True)
    table = JobTable((*JOBS.jobs, optional))
    assert "extra" not in table.enabled() and "extra" in table.enabled(["extra"])
    with pytest.raises(UserError, match="KAPPA_OPTIONAL_JOBS='detector'"):
        table.enabled(["detector"])


def test_incidents_run_in_the_detectors_application():
    assert JOBS.applications(RUNNING)["detector"] == ("detector", "incidents")


def test_a_job_needs_its_own_topics_and_no_others():
    used = {topic.name for topic in JOBS.used(["detector"], TOPICS)}
    assert used == {"statistics", "novelties", "events.rejected", "sink.progress"}


def test_each_query_has_a_consumer_group_of_its_own():
    groups = [query for job in JOBS for query in job.reads_of(TOPICS)]
    assert len(groups) == len(set(groups)) and {"archive.log", "archive.statistics", "indexer"} <= set(groups)


def test_topics_by_group_are_the_maps():
    assert Topics.INDEXED.of(TOPICS) == tuple(topic for topic in TOPICS if topic.index)
    assert {topic.name for topic in JOBS["indexer"].inputs(TOPICS)} >= {"statistics", "novelties", "events.rejected"}


def test_the_table_loads_without_spark():
    script = "import sys, jobs.table; print(sorted({'pyspark', 'numpy', 'confluent_kafka'} & sys.modules.keys()))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# What is deployed


def _yaml(path):
    return yaml.safe_load(Path(path).read_text())


def test_compose_has_a_service_for_each_application():
    services = _yaml("infra/docker/jobs-standard.yml")["services"]
    assert {name for name, one in services.items() if not one.get("profiles")} == {*JOBS.applications(RUNNING)}
    assert {*services} == {*JOBS.applications(JOBS.names())}
    assert all(one["command"] == ["run", name] for name, one in services.items())


@pytest.mark.parametrize("profile", ["standard", "small"])
def test_a_generation_in_compose_has_every_service_and_waits_for_none(profile):
    services = _yaml(f"infra/docker/jobs-{profile}.yml")["services"]
    lines = Path(f"infra/docker/generation-{profile}.yml").read_text().splitlines()
    found = {
        found[1]: found[2] for line in lines if (found := re.match(r"  (\w+): {(.*)}$", line)) and found[1] in services
    }
    assert {*found} == {*services}
    for name, changes in found.items():
        assert "depends_on: !reset null" in changes
        assert ("profiles: !reset null" in changes) is ("profiles" in services[name])


def test_prometheus_asks_each_application():
    kappa, *_ = _yaml("infra/prometheus/prometheus.yml")["scrape_configs"]
    assert {*kappa["dns_sd_configs"][0]["names"]} == {*JOBS.applications(JOBS.names()), "jobs"}


def test_the_chart_has_values_for_each_application():
    values = _yaml("charts/kappa/values.yaml")["jobs"]
    assert {*values} == {*JOBS.applications(JOBS.names()), "all"}
    for name, application in JOBS.applications(JOBS.names()).items():
        assert values[name]["enabled"] is not all(JOBS[job].optional for job in application)
        assert ("driverMemory" in values[name]) is any(JOBS[job].uses_spark for job in application)


def test_a_generation_in_the_chart_may_have_each_application():
    schema = orjson.loads(Path("charts/kappa/values.schema.json").read_bytes())
    generation = schema["properties"]["generations"]["items"]["properties"]
    assert generation["jobs"]["items"]["enum"] == [*JOBS.applications(JOBS.names())]


def test_the_indexer_scales_by_the_lag_of_every_topic_that_it_reads():
    template = Path("charts/kappa/templates/keda.yaml").read_text()
    (listed,) = re.findall(r"range list ([^}]+)}}", template)
    assert re.findall(r'"([^"]+)"', listed) == [topic.name for topic in JOBS["indexer"].inputs(TOPICS)]


def test_a_name_that_would_be_open_to_another_jobs_user_is_refused():
    """Its groups and transactional ids are allowed by a prefix: jobs.runtime.rights."""
    table = JobTable((*JOBS.jobs, replace(JOBS["rules"], name="rules-fast")))
    with pytest.raises(UserError, match="job 'rules-fast': begins with the name of job 'rules'"):
        table.check(TOPICS)
