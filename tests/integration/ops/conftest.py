"""A small chain for each file of tests that wants one: to start it takes a while."""

import pytest

from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from tests.integration.conftest import free_ports
from tests.integration.ops.small_chain import SECONDS, SmallChain
from tests.spark import end_spark
from tests.waiting import until


@pytest.fixture(scope="session")
def brokers(spark):
    """Those that were started; they end after Spark, whose clients would log for ever that they are gone."""
    started = []
    yield started
    end_spark()
    for broker in started:
        broker.stop()


@pytest.fixture(scope="session")
def new_chain(spark, brokers, tmp_path_factory):
    """Makes a chain with a broker and topics; nothing runs and nothing is fed yet."""

    def make(name: str = "chain", prefix: str = "", seconds: int = SECONDS) -> SmallChain:
        broker = KafkaBroker(tmp_path_factory.mktemp(f"{name}-broker"), free_ports(4), jars=default_jars())
        brokers.append(broker)
        broker.spawn()
        until(broker.ready, 120, "the broker does not answer")
        chain = SmallChain(tmp_path_factory.mktemp(name), broker.address, spark, prefix, seconds)
        chain.create_topics()
        return chain

    return make


@pytest.fixture(scope="module")
def small_chain(new_chain):
    """A chain of its own for each file of tests."""
    return new_chain()
