"""Real servers for the whole session, and topics of its own for each test."""

import os
import socket
import uuid

import pytest

from connectors.kafka.admin import apply, connect
from infra.contract.topics import TopicMap, load_topics
from infra.jars import default_jars
from infra.local import LocalServers
from tests.spark import end_spark


def free_ports(count: int) -> int:
    """The first of `count` neighbouring ports that nobody listens on."""
    start = 23000 + os.getpid() * 40 % 8000  # apart from those of a test process beside this one
    for first in range(start, 65000 - count, count):
        if all(_free(port) for port in range(first, first + count)):
            return first
    raise RuntimeError(f"no {count} neighbouring ports are free")


def _free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """One Kafka broker and Elasticsearch, in a folder and on ports of their own."""
    port = free_ports(4)
    home = tmp_path_factory.mktemp("servers")
    local = LocalServers(home, kafka_port=port, elasticsearch_port=port + 2, jars=default_jars())
    local.up()
    yield local
    end_spark()  # its clients go before the broker does
    local.down()


@pytest.fixture
def topics(servers):
    """The whole map under a prefix of this test's own, created on the broker; gone after the test."""
    prefix = f"test-{uuid.uuid4().hex[:8]}"
    declared = load_topics().topics
    mapped = TopicMap({key: t.model_copy(update={"name": f"{prefix}.{t.name}"}) for key, t in declared.items()})
    admin = connect(servers.bootstrap)
    apply(admin, mapped)
    yield mapped
    for deletion in admin.delete_topics([topic.name for topic in mapped]).values():
        deletion.result()
