import json

import pytest
from typer.testing import CliRunner

from infra.contract.topics import load_topics
from infra.errors import UserError
from ops.commands.infra import app, topics_app
from ops.replay.registry import Generation, Registry

runner = CliRunner()


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("KAPPA_HOME", str(tmp_path))
    monkeypatch.setenv("KAPPA_KAFKA_PORT", "21060")
    monkeypatch.setenv("KAPPA_ELASTICSEARCH_PORT", "21064")
    return tmp_path


def fails(cli, *arguments):
    """The message of the UserError that the command line would print."""
    error = runner.invoke(cli, arguments).exception
    assert isinstance(error, UserError)
    return str(error)


def test_status_names_each_server_and_fails_while_one_is_down(home):
    result = runner.invoke(app, ["status", "--json"])
    assert result.exit_code == 1
    assert json.loads(result.stdout) == [
        {"name": name, "state": "down", "address": address, "pid": None, "log": f"{home}/logs/{name}.log"}
        for name, address in (("elasticsearch", "http://127.0.0.1:21064"), ("kafka-1", "127.0.0.1:21060"))
    ]


def test_status_of_three_brokers(monkeypatch):
    monkeypatch.setenv("KAPPA_BROKERS", "3")
    rows = json.loads(runner.invoke(app, ["status", "--json"]).stdout)
    assert [row["name"] for row in rows] == ["elasticsearch", "kafka-1", "kafka-2", "kafka-3"]


def test_logs_prints_the_last_lines(home):
    (home / "logs").mkdir()
    (home / "logs" / "kafka-1.log").write_text("one\ntwo [bold]\nthree\n")
    assert runner.invoke(app, ["logs", "kafka-1", "-n", "2"]).stdout == "two [bold]\nthree\n"


def test_logs_of_an_unknown_server_names_those_there_are():
    assert fails(app, "logs", "mysql") == "server 'mysql' is unknown; there are elasticsearch, kafka-1"


@pytest.mark.parametrize(
    ("variable", "value"), [("KAPPA_KAFKA_PORT", "abc"), ("KAPPA_BROKERS", "0"), ("KAPPA_KAFKA_HEAP", "lots")]
)
def test_an_unusable_setting_is_named(monkeypatch, variable, value):
    monkeypatch.setenv(variable, value)
    message = fails(app, "status")
    assert message.startswith(f"{variable}={value!r}: ")
    assert "\n" not in message


def test_an_unusable_flag_is_named():
    assert "KAFKA_PORT=70000" in fails(app, "up", "--kafka-port", "70000")


def test_down_is_fine_where_nothing_runs():
    assert runner.invoke(app, ["down"]).exit_code == 0


def test_list_prints_the_map_of_a_generation():
    result = runner.invoke(topics_app, ["list", "--json", "--generation", "v2"])
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows["events.v2"]["schema"] == "events"
    assert rows["events.v2"]["retention"] == "7d"
    assert rows["telemetry.syslog"]["lateness"] == "all but 0.0001, at most 20s"


def test_describe_compares_what_a_generation_is_planned_with(monkeypatch):
    wide = Generation(name="wide", base="live", jobs=("statistics", "detector"), partitions=16)
    monkeypatch.setattr("ops.commands.infra.connect", lambda bootstrap: None)
    monkeypatch.setattr(Registry, "read", lambda bootstrap: Registry({"wide": wide}))
    compared = []
    monkeypatch.setattr("ops.commands.infra.compare", lambda admin, topics: compared.extend(topics) or [])

    runner.invoke(topics_app, ["describe", "--generation", "wide"], catch_exceptions=False)
    partitions = {topic.name: topic.partitions for topic in compared}
    assert partitions["statistics.wide"] == partitions["novelties.wide"] == 16
    assert partitions["events"] == load_topics()["events"].partitions != 16
    assert "events.wide" not in partitions


def test_schema_prints_json_schema():
    printed = json.loads(runner.invoke(topics_app, ["schema", "novelties"]).stdout)
    assert printed["title"] == "novelties"
    assert printed["properties"]["score"] == {"type": "number"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("schema", "nope"), "topic 'nope' is not in the map"),
        (("schema", "telemetry.syslog"), "topic 'telemetry.syslog' has no schema"),
        (("list", "--generation", "V 2"), "generation='V 2': use up to 31 lower-case"),
        (("describe", "nope"), "topic 'nope' is not in the map"),
        (("list", "--map", "absent.yaml"), "absent.yaml: can't be read"),
    ],
)
def test_bad_input_is_one_clear_line(arguments, message):
    assert fails(topics_app, *arguments).startswith(message)


def test_a_wrong_broker_address_is_named(monkeypatch):
    monkeypatch.setattr("connectors.kafka.admin.TIMEOUT_SECONDS", 0.5)
    message = fails(topics_app, "apply", "--bootstrap", "127.0.0.1:1")
    assert message.startswith("KAPPA_KAFKA_BOOTSTRAP=127.0.0.1:1: no Kafka broker answers")
