"""A mirror between two clusters that ask who it is, each with an authority of its own: with the rights of the docs."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from connectors.kafka import admin
from infra.contract.topics import load_topics
from jobs.runtime.rights import CREATE, DESCRIBE_CONFIGS, READ, WRITE, Right
from ops.site.mirror import Mirror, mirrored
from tests.integration.conftest import free_ports
from tests.integration.ops.site.mirroring import mirror_maker
from tests.integration.ops.small_chain import PATIENCE
from tests.integration.security.conftest import Secured
from tests.waiting import until

USER = "mirror"
TOPICS = [topic.model_copy(update={"timestamp": "CreateTime"}) for topic in mirrored(load_topics())]
AT_THE_SITE = [Right("topic", topic.name, READ) for topic in TOPICS]
AT_THE_CENTRE = [
    *(Right("topic", topic.name, WRITE) for topic in TOPICS),
    *(Right("topic", "mm2-", operation, is_prefix=True) for operation in (CREATE, READ, WRITE, DESCRIBE_CONFIGS)),
    Right("group", "dc1-mm2", READ),
    Right("transactional-id", "connect-cluster-dc1-mm2", WRITE, is_prefix=True),
    Right("transactional-id", "dc1-mm2", WRITE, is_prefix=True),
]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(2 * PATIENCE)]


@pytest.fixture
def clusters(tmp_path_factory) -> Iterator[tuple[Secured, Secured]]:
    """The site's and the centre's, with the mirrored topics and a user for the mirror on each."""
    made = []
    for name, rights in {"site": AT_THE_SITE, "centre": AT_THE_CENTRE}.items():
        one = Secured(tmp_path_factory.mktemp(name))
        made.append(one)
        one.broker.spawn()
        until(one.broker.ready, 120, "a secured broker is not ready")
        admin.apply(one.admin, TOPICS)
        one.add(USER)
        for right in rights:
            one.allow(USER, right)
    yield made[0], made[1]
    for one in made:
        one.broker.stop()


def security(name: str, cluster: Secured) -> str:
    """The lines of the mirror's file that say who it is, as docs/how-to/sites.md has them."""
    login = "org.apache.kafka.common.security.scram.ScramLoginModule"
    lines = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{login} required username="{USER}" password="{cluster.identities.password(USER)}";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": cluster.identities.authority,
    }
    return "".join(f"{name}.{key} = {value}\n" for key, value in lines.items())


def records(cluster: Secured, partitions: list[tuple[str, int]]) -> list[tuple]:
    """All committed records, by partition and in order."""
    own = {"group.id": "kappa.reader", "isolation.level": "read_committed", "enable.auto.commit": False}
    consumer = Consumer({**cluster.connection(), **own})
    consumer.assign([TopicPartition(*place, 0) for place in partitions])
    found = []
    while messages := consumer.consume(1000, 2):
        found += [(m.topic(), m.partition(), m.offset(), m.timestamp()[1], m.key(), m.value()) for m in messages]
    consumer.close()
    return [(*place, at, key, value) for *place, _, at, key, value in sorted(found)]


def test_each_record_comes_once_to_a_centre_that_asks_who_brings_it(clusters, tmp_path: Path):
    site, centre = clusters
    partitions = [(topic.name, number) for topic in TOPICS for number in range(topic.partitions)]
    now, producer = int(time.time() * 1000), Producer(site.connection())
    for number, (topic, partition) in enumerate(partitions):
        for record in range(20):
            producer.produce(topic, f"{record}", f"vm-{number}", partition, timestamp=now + record)
    assert producer.flush(60) == 0

    way = Mirror("dc1", site.bootstrap, centre.bootstrap)
    mirror = mirror_maker(way, TOPICS, free_ports(1), tmp_path)
    with (tmp_path / "dc1.properties").open("a") as file:
        file.write(security("dc1", site) + security("centre", centre))
    sent = records(site, partitions)
    assert len(sent) == 20 * len(partitions)
    mirror.start()
    try:
        until(
            lambda: len(records(centre, partitions)) >= len(sent), PATIENCE, "not all has come to the centre", pause=1
        )
        mirror.kill()
        mirror.start()
        producer.produce(TOPICS[0].name, "last", "vm-0", 0, timestamp=now + 100)
        assert producer.flush(60) == 0
        until(lambda: len(records(centre, partitions)) > len(sent), PATIENCE, "nothing comes after a kill", pause=1)
    finally:
        mirror.clean()
    assert records(centre, partitions) == records(site, partitions)
