"""Servers of their own, which are killed: they start again, and who waits for them goes on."""

from concurrent.futures import ThreadPoolExecutor

from connectors.kafka.admin import apply, connect
from connectors.kafka.markers import MarkedWriter, ProgressSettings
from connectors.kafka.transactions import Patience
from infra.contract.topics import load_topics
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.indexer.indexer import WAITING
from tests.integration.conftest import free_ports
from tests.integration.connectors.kafka.topic import read, write
from tests.integration.jobs.indexer.conftest import START, Chain, poll_until, window


def test_three_brokers_go_on_without_one(tmp_path):
    port = free_ports(8)
    servers = LocalServers(tmp_path, kafka_port=port, elasticsearch_port=port + 6, brokers=3, jars=default_jars())
    try:
        servers.up()
        admin = connect(servers.bootstrap)
        inventory = load_topics()["inventory"]
        apply(admin, [inventory])
        replicas = admin.list_topics(inventory.name, timeout=30).topics[inventory.name].partitions[0].replicas
        assert sorted(replicas) == [1, 2, 3]
        write(servers.bootstrap, inventory.name, b"with three")
        servers.kafka[1].kill()
        write(servers.bootstrap, inventory.name, b"with two")
        assert read(servers.bootstrap, inventory.name, 2) == [b"with three", b"with two"]
        assert [row["state"] for row in servers.status()] == ["ready", "starting", "down", "starting"]
        servers.up()
        assert {row["state"] for row in servers.status()} == {"ready"}
    finally:
        servers.down()


def test_a_transaction_that_meets_the_restart_of_its_broker_is_committed(tmp_path):
    port = free_ports(4)
    servers = LocalServers(tmp_path, kafka_port=port, elasticsearch_port=port + 2, jars=default_jars())
    (broker,) = servers.kafka
    try:
        servers.up()
        topics = load_topics()
        apply(connect(servers.bootstrap), [topics["sink.progress"], topics["inventory"]])
        writer = MarkedWriter(ProgressSettings(servers.bootstrap, "meets-a-restart", "run"), 0)
        writer.confirm()
        broker.kill()
        with ThreadPoolExecutor(1) as pool:
            meets = pool.submit(writer.begin_batch, 0, 1)  # sends an offset, for which it needs the coordinators
            broker.spawn()
            assert meets.result(Patience().offsets)
        writer.produce([(topics["inventory"].name, 0, b"vm-1", b"written", 0, None)])
        writer.commit()
        assert read(servers.bootstrap, topics["inventory"].name, 1) == [b"written"]
    finally:
        servers.down()


def test_the_indexer_waits_for_either_server_and_loses_nothing(tmp_path):
    port = free_ports(4)
    servers = LocalServers(tmp_path, kafka_port=port, elasticsearch_port=port + 2, jars=default_jars())
    try:
        servers.up()
        chain = Chain(servers.bootstrap, servers.elasticsearch_url)
        with chain.indexer():
            chain.send("statistics", *(window("vm-1", number) for number in range(100)))
            poll_until(chain.settled, "the first part")

            servers.elasticsearch.kill()
            waits = WAITING.labels("unavailable")._value
            chain.send("statistics", *(window("vm-1", number) for number in range(100, 200)))
            poll_until(lambda: waits.get() == 1, "the indexer waits")
            assert sum(chain.lags()) == 100
            servers.up()
            poll_until(chain.settled, "the second part")

            chain.send("statistics", *(window("vm-1", number) for number in range(200, 300)))
            poll_until(lambda: len(chain.documents("statistics")) > 400, "some progress")
            servers.kafka[0].kill()
            servers.up()
            chain.send("statistics", *(window("vm-1", number) for number in range(300, 310)))
            poll_until(chain.settled, "the third part")
        ends = sorted(document["window"]["end"] for document in chain.documents("statistics").values())
    finally:
        servers.down()
    assert ends == sorted(2 * [START // 1_000_000 + 10_000 * (number + 1) for number in range(310)])
