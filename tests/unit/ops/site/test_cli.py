import pytest
import yaml
from typer.testing import CliRunner

from infra.contract.topics import load_topics
from infra.errors import UserError
from ops.site.cli import app
from ops.site.mirror import mirrored

runner = CliRunner()


def test_the_centres_map_keeps_the_sites_times_and_all_else(tmp_path):
    path = tmp_path / "centre.yaml"
    path.write_text(runner.invoke(app, ["topics"], catch_exceptions=False).stdout)
    site, centre = load_topics(), load_topics(path)
    names = {topic.name for topic in mirrored(site)}
    assert {topic.name for topic in site if topic.timestamp == "LogAppendTime"} - names == {"notifications"}
    for topic in site:
        expected = topic.model_copy(update={"timestamp": "CreateTime"}) if topic.name in names else topic
        assert centre[topic.name] == expected


def test_a_chain_that_moves_keeps_all_times(tmp_path):
    path = tmp_path / "there.yaml"
    path.write_text(runner.invoke(app, ["topics", "--all"], catch_exceptions=False).stdout)
    assert {topic.timestamp for topic in load_topics(path)} == {"CreateTime"}
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
