"""Sites with a broker and a chain each, a centre, and MirrorMaker 2 between them."""

from collections.abc import Iterable
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from infra.contract.topics import Topic
from infra.jars import default_jars, fetch
from infra.jdk import KAFKA_JAVA, find_jdk
from infra.local.kafka import LOGGING
from ops.site.mirror import Mirror, mirrored, properties
from tests.chaos.processes import Job
from tests.integration.ops.small_chain import PATIENCE, SmallChain
from tests.waiting import until


def mirror_maker(mirror: Mirror, topics: Iterable[Topic], port: int, folder: Path) -> Job:
    """MirrorMaker 2 of these topics, as `kappa site mirror` configures it; not started."""
    file = folder / f"{mirror.site}.properties"
    file.write_text(properties(mirror, topics, port))
    java = str(find_jdk(KAFKA_JAVA, "Kafka") / "bin" / "java")
    logging = f"-Dlog4j2.configurationFile={LOGGING}"
    program = (java, "-Xmx384m", logging, "-cp", f"{fetch('kafka', default_jars())}/*")
    command = ("org.apache.kafka.connect.mirror.MirrorMaker", str(file))
    return Job(f"mirror-{mirror.site}", command, {}, folder / f"{mirror.site}.log", program=program)


def between(site: str, chain: SmallChain, centre: SmallChain) -> Mirror:
    """From the broker of one to that of the other."""
    return Mirror(site, chain.settings.kafka_bootstrap, centre.settings.kafka_bootstrap)


def sent(chain: SmallChain) -> int:
    """How many offsets the mirrored topics have; where nobody wrote in transactions, these are the records."""
    return sum(chain.log.ends([topic.name for topic in mirrored(chain.topics)]).values())


class Arrivals:
    """Counts the committed records of these topics at the centre."""

    def __init__(self, centre: SmallChain, topics: Iterable[Topic]) -> None:
        settings = {"bootstrap.servers": centre.settings.kafka_bootstrap, "group.id": "arrivals"}
        own = {"isolation.level": "read_committed", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        self._consumer, self._count = Consumer(settings | own), 0
        places = centre.log.partitions([topic.name for topic in topics])
        self._consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in places])

    def wait_for(self, count: int) -> None:
        """Returns once there are so many; fails if there are more."""
        until(lambda: self.seen() >= count, PATIENCE, f"{count} records have not come to the centre", pause=0.1)
        assert self._count == count

    def seen(self) -> int:
        """How many there are by now."""
        while messages := self._consumer.consume(5_000, timeout=0.2):
            self._count += len(messages)
        return self._count

    def close(self) -> None:
        self._consumer.close()
