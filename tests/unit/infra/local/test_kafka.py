from pathlib import Path

import pytest

from infra.errors import UserError
from infra.local.identities import Identities
from infra.local.kafka import KafkaBroker


def test_one_node_keeps_one_copy(tmp_path):
    properties = KafkaBroker(tmp_path, 21070).properties()
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:21070,CONTROLLER://127.0.0.1:21071"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:21071"
    assert properties["transaction.state.log.replication.factor"] == 1
    assert properties["transaction.state.log.min.isr"] == 1
    assert properties["offsets.topic.replication.factor"] == 1


def test_three_nodes_survive_one_loss_and_share_no_port(tmp_path):
    nodes = [KafkaBroker(tmp_path, 21070, node=node, brokers=3) for node in (1, 2, 3)]
    properties = [node.properties() for node in nodes]
    assert {p["transaction.state.log.replication.factor"] for p in properties} == {3}
    assert {p["min.insync.replicas"] for p in properties} == {2}
    assert len({p["controller.quorum.voters"] for p in properties}) == 1
    assert sorted(port for node in nodes for port in node.ports) == list(range(21070, 21076))
    assert len({p["log.dirs"] for p in properties}) == 3


def test_overrides_go_before_the_settings(tmp_path):
    properties = KafkaBroker(tmp_path, 21070, overrides={"message.max.bytes": 5}).properties()
    assert (properties["message.max.bytes"], properties["node.id"]) == (5, 1)


def test_data_of_another_cluster_size_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("infra.local.kafka.fetch", lambda *_: tmp_path)
    (tmp_path / "kafka-1").mkdir()
    (tmp_path / "kafka-1" / "brokers").write_text("1")
    with pytest.raises(UserError, match=r"brokers=3: the data in .* was written by 1"):
        KafkaBroker(tmp_path, 21070, brokers=3).check()
    KafkaBroker(tmp_path, 21070).check()


@pytest.fixture
def identities(tmp_path):
    made = Identities(tmp_path / "security")
    made.create()
    return made


def test_a_secured_cluster_shares_no_port_and_denies_by_default(tmp_path, identities):
    nodes = [KafkaBroker(tmp_path, 21070, node=node, brokers=3, identities=identities) for node in (1, 2, 3)]
    properties = [node.properties() for node in nodes]
    assert sorted(port for node in nodes for port in node.ports) == list(range(21070, 21079))
    assert properties[1]["listeners"] == (
        "PASSWORDS://127.0.0.1:21071,CERTIFICATES://127.0.0.1:21077,CONTROLLER://127.0.0.1:21074"
    )
    assert properties[0]["authorizer.class.name"].endswith("StandardAuthorizer")
    assert "PLAINTEXT" not in "".join(f"{key}={value}" for one in properties for key, value in one.items())


def test_no_password_is_in_a_brokers_configuration(tmp_path, identities):
    broker = KafkaBroker(tmp_path, 21070, identities=identities)
    assert identities.password("admin") not in "".join(map(str, broker.properties().values()))


def test_passwords_reach_the_formatting_program_in_a_file_that_is_gone_afterwards(tmp_path, identities, monkeypatch):
    seen = {}

    def run(command):
        java, argument = command
        seen["command"], seen["file"] = str(java), Path(argument.removeprefix("@")).read_text().splitlines()
        return 0, ""

    monkeypatch.setattr("infra.local.kafka.run", run)
    monkeypatch.setattr("infra.local.kafka.fetch", lambda *_: tmp_path)
    KafkaBroker(tmp_path, 21070, identities=identities).prepare()
    assert seen["file"][-1] == f'"SCRAM-SHA-512=[name=admin,password={identities.password("admin")}]"'
    assert '"kafka.tools.StorageTool"' in seen["file"]
    assert sorted(path.name for path in (tmp_path / "kafka-1").iterdir()) == ["brokers", "server.properties"]


def test_data_of_a_broker_without_security_is_not_secured_behind_its_back(tmp_path, monkeypatch):
    monkeypatch.setattr("infra.local.kafka.fetch", lambda *_: tmp_path)
    (tmp_path / "kafka-1" / "data").mkdir(parents=True)
    (tmp_path / "kafka-1" / "data" / "meta.properties").touch()
    with pytest.raises(UserError, match=r"--secured: the data in .* is that of servers without security"):
        KafkaBroker(tmp_path, 21070, identities=Identities(tmp_path / "security")).check()
