import json

import pytest
import yaml
from typer.testing import CliRunner

from infra.contract.topics import Lateness, load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.savepoints.saved import ChainSavepoint
from ops.site import cli
from ops.site.cli import app
from ops.site.failover import Failover
from ops.site.mirror import mirrored

runner = CliRunner()


def test_the_centres_map_keeps_the_sites_times_and_all_else(tmp_path):
    path = tmp_path / "centre.yaml"
    path.write_text(runner.invoke(app, ["topics"], catch_exceptions=False).stdout)
    site, centre = load_topics(), load_topics(path)
    names = {topic.name for topic in mirrored(site)}
    assert {topic.name for topic in site if topic.timestamp == "LogAppendTime"} - names == {"notifications"}
    for topic in site:
        lateness = topic.lateness and Lateness(max=topic.lateness.max)  # always waited for
        mirrored_one = topic.model_copy(update={"timestamp": "CreateTime", "lateness": lateness})
        assert centre[topic.name] == (mirrored_one if topic.name in names else topic)


def test_a_chain_that_moves_keeps_all_times(tmp_path):
    path = tmp_path / "there.yaml"
    path.write_text(runner.invoke(app, ["topics", "--all"], catch_exceptions=False).stdout)
    site, there = load_topics(), load_topics(path)
    assert [*there] == [topic.model_copy(update={"timestamp": "CreateTime"}) for topic in site]
    arguments = ["mirror", "old", "--from", "a:1", "--to", "b:1", "--all"]
    assert "novelties," in runner.invoke(app, arguments, catch_exceptions=False).stdout


def test_from_an_edge_site_only_what_was_found_is_mirrored(tmp_path):
    arguments = ["mirror", "dc1", "--from", "a:1", "--to", "b:1", "--edge"]
    printed = runner.invoke(app, arguments, catch_exceptions=False).stdout
    (line,) = (line for line in printed.splitlines() if line.startswith("dc1->centre.topics = "))
    assert line.partition(" = ")[2] == "statistics, novelties, incidents, alerts"
    path = tmp_path / "centre.yaml"
    path.write_text(runner.invoke(app, ["topics", "--edge"], catch_exceptions=False).stdout)
    assert [*load_topics(path)] == [*load_topics()]  # jobs give their records the event's time on the site, too


def test_edge_and_all_exclude_each_other():
    error = runner.invoke(app, ["topics", "--edge", "--all"]).exception
    assert isinstance(error, UserError) and str(error).startswith("--edge: is a part of what --all mirrors")


@pytest.mark.parametrize(("form", "begin"), [("properties", "clusters = dc1, centre"), ("strimzi", "apiVersion")])
def test_mirror_prints_either_form(form, begin):
    arguments = ["mirror", "dc1", "--from", "a:1", "--to", "b:1", "--as", form]
    printed = runner.invoke(app, arguments, catch_exceptions=False).stdout
    assert printed.startswith(begin) and "exactly.once.source.support" in printed


def test_another_map_has_other_topics(tmp_path):
    declared = yaml.safe_load(runner.invoke(app, ["topics"]).stdout)
    declared["topics"] = {name: topic for name, topic in declared["topics"].items() if name != "telemetry.syslog"}
    (tmp_path / "topics.yaml").write_text(yaml.safe_dump(declared))
    arguments = ["mirror", "dc1", "--from", "a:1", "--to", "b:1", "--map", str(tmp_path / "topics.yaml")]
    printed = runner.invoke(app, arguments, catch_exceptions=False).stdout
    assert r"telemetry\\.lines" in printed and r"telemetry\\.syslog," not in printed


def test_the_sites_own_brokers_are_refused():
    error = runner.invoke(app, ["mirror", "dc1", "--from", "a:1", "--to", "a:1"]).exception
    assert isinstance(error, UserError) and str(error).startswith("--to a:1: are brokers of the site itself")


@pytest.fixture
def saved(monkeypatch, tmp_path):
    """A savepoint of all jobs; what is asked of the failover is in the list, and it is told as done."""
    saved = ChainSavepoint(
        name="move", generation="live", taken="", jobs=("enrichment", "detector"), queries={}, groups={}, ends={},
        files={},
    )  # fmt: skip
    asked = []

    def failover(*positional, without, patience, tell):
        asked.append((*positional, without, patience))
        tell(3)
        return Failover(saved.jobs, ("billing",), ("dc1", "dc2"))

    monkeypatch.setattr(cli, "load_storage_settings", lambda: Settings(home=tmp_path))
    monkeypatch.setattr(cli.savepoints, "read", lambda name, settings: saved)
    monkeypatch.setattr(cli, "failover", failover)
    return saved, asked


FAILOVER = ["failover", "move", "--from", "kafka.east:9092", "--back", "west"]


def test_a_failover_says_what_went_over_and_what_is_left_to_do(saved):
    told = runner.invoke(app, FAILOVER, catch_exceptions=False).stderr
    assert "enrichment, detector of live go on from move" in told and "readers: billing; mirrors: dc1, dc2" in told
    assert "now end the mirror that led here" in told


def test_a_failover_can_be_read_by_programs(saved):
    _, asked = saved
    options = ["--without", "a", "--without", "b", "--patience", "90s", "--json"]
    done = json.loads(runner.invoke(app, [*FAILOVER, *options], catch_exceptions=False).stdout)
    assert done == {"jobs": ["enrichment", "detector"], "readers": ["billing"], "mirrors": ["dc1", "dc2"]}
    (savepoint, source, back, _, without, patience) = asked[0]
    assert (savepoint.name, source, back, without, patience) == ("move", "kafka.east:9092", "west", ["a", "b"], 90)


def test_a_name_that_no_mirror_can_have_is_refused(saved):
    error = runner.invoke(app, [*FAILOVER[:-1], "centre"]).exception
    assert isinstance(error, UserError) and str(error).startswith("site 'centre': use up to 31 lower-case letters")
    assert not saved[1]
