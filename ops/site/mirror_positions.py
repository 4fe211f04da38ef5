"""The positions of MirrorMaker 2, which Kafka Connect keeps in a compacted topic of the cluster that it writes to.

They name offsets of the cluster that is read. So those of the sites' mirrors hold wherever the mirrors write to.
"""

import re
import time
from collections.abc import Iterable, Mapping

import orjson
from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

from connectors.kafka.admin import TIMEOUT_SECONDS
from connectors.kafka.offsets import Log
from connectors.kafka.producer import CollectorProducer
from connectors.kafka.reader import read_topic
from infra.contract.offsets import Offsets
from ops.site.mirror import SITE

TOPIC = "mm2-offsets.{site}.internal"  # of `connect-mirror-maker.sh`
_TOPICS = re.compile(rf"mm2-offsets\.(?P<site>{SITE})\.internal|__mirror-(?P<strimzi>{SITE})-offset")
_CONNECTOR = "MirrorSourceConnector"


def sites_of(log: Log) -> dict[str, str]:
    """The topics with positions of mirrors that write to a cluster, and the sites that those lead from."""
    found = map(_TOPICS.fullmatch, log.admin.list_topics(timeout=TIMEOUT_SECONDS).topics)
    return {match[0]: match["site"] or match["strimzi"] for match in found if match}


def carry_over(source: Log, target: Log, topics: Iterable[str]) -> None:
    """Give the mirrors whose positions these topics hold the same positions at the target."""
    for topic in topics:
        _write(target, topic, {one.key() or b"": one.value() or b"" for one in read_topic(source.bootstrap, topic)})


def begin_at(source: Log, target: Log, site: str, ends: Offsets) -> None:
    """Have the mirror `site`, which leads from the source to the target, begin at these offsets of the source."""
    positions = {_key(site, topic, number): _value(end) for (topic, number), end in ends.items() if end}
    _write(target, TOPIC.format(site=site), positions)


def _key(site: str, topic: str, number: int) -> bytes:
    """Byte for byte as Kafka Connect writes it: of another key it would keep another position."""
    return orjson.dumps([_CONNECTOR, {"cluster": site, "partition": number, "topic": topic}])


def _value(end: int) -> bytes:
    return orjson.dumps({"offset": end - 1})  # of the last record that the mirror need not bring


def _write(log: Log, topic: str, positions: Mapping[bytes, bytes]) -> None:
    if topic not in log.admin.list_topics(timeout=TIMEOUT_SECONDS).topics:
        wanted = NewTopic(topic, num_partitions=1, config={"cleanup.policy": "compact"})
        for answer in log.admin.create_topics([wanted], operation_timeout=TIMEOUT_SECONDS).values():
            answer.result()
    # The partitioner of Java's clients: a key stays in its partition.
    producer = CollectorProducer(log.bootstrap, [topic], partitioner="murmur2_random")
    for key, value in positions.items():
        producer.send(topic, key, value, int(time.time() * 1000))
    producer.flush()
