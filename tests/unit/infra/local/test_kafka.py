import pytest

from infra.errors import UserError
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
