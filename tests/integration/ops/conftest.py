"""One small chain for all tests here that want one: to start it takes a while."""

import pytest

from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from tests.integration.conftest import free_ports
from tests.integration.ops.small_chain import SmallChain
from tests.spark import end_spark
from tests.waiting import until


@pytest.fixture(scope="session")
def small_chain(spark, tmp_path_factory):
    """A broker and topics; nothing runs and nothing is fed yet."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"), free_ports(4), jars=default_jars())
    broker.spawn()
    until(broker.ready, 120, "the broker does not answer")
    chain = SmallChain(tmp_path_factory.mktemp("chain"), broker.address, spark)
    chain.create_topics()
    yield chain
    end_spark()  # its clients go before the broker does
    broker.stop()
