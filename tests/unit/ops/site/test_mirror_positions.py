from types import SimpleNamespace

import pytest

from ops.site import mirror_positions


class Cluster:
    """A cluster's topics, with the records that were written to them."""

    def __init__(self, name: str, topics: dict[str, list[tuple[bytes, bytes]]]) -> None:
        self.bootstrap, self.topics = name, topics
        self.admin = SimpleNamespace(
            list_topics=lambda timeout: SimpleNamespace(topics=self.topics), create_topics=self._create
        )

    def _create(self, wanted, operation_timeout):
        for one in wanted:
            assert one.config == {"cleanup.policy": "compact"}
            self.topics[one.topic] = []
        return {one.topic: SimpleNamespace(result=lambda: None) for one in wanted}


@pytest.fixture
def clusters(monkeypatch):
    """One that is left, with two mirrors' positions, and one that has never seen a mirror."""
    key = b'["MirrorSourceConnector",{"cluster":"dc1","partition":0,"topic":"inventory"}]'
    old = {
        "inventory": [(b"vm-1", b"{}")],
        "mm2-offsets.dc1.internal": [(key, b'{"offset":3}'), (key, b'{"offset":8}')],
        "__mirror-dc2-offset": [(b"[]", b'{"offset":5}')],
        "mm2-configs.dc1.internal": [],
    }
    east, west = Cluster("east:1", old), Cluster("west:1", {})
    by_name = {"east:1": east, "west:1": west}

    class Producer:
        def __init__(self, bootstrap, topics, partitioner):
            assert partitioner == "murmur2_random"
            self.topics = by_name[bootstrap].topics
            assert set(topics) <= self.topics.keys()

        def send(self, topic, key, value, timestamp_ms):
            self.topics[topic].append((key, value))

        def flush(self):
            pass

    def read_topic(bootstrap, topic):
        return [SimpleNamespace(key=lambda k=k: k, value=lambda v=v: v) for k, v in by_name[bootstrap].topics[topic]]

    monkeypatch.setattr(mirror_positions, "CollectorProducer", Producer)
    monkeypatch.setattr(mirror_positions, "read_topic", read_topic)
    return east, west


def test_the_topics_of_either_form_are_known_with_their_sites(clusters):
    assert mirror_positions.sites_of(clusters[0]) == {"mm2-offsets.dc1.internal": "dc1", "__mirror-dc2-offset": "dc2"}


def test_the_last_position_of_each_partition_goes_over_byte_for_byte(clusters):
    east, west = clusters
    mirror_positions.carry_over(east, west, mirror_positions.sites_of(east))
    (key, _), _ = east.topics["mm2-offsets.dc1.internal"]
    assert west.topics == {
        "mm2-offsets.dc1.internal": [(key, b'{"offset":8}')],
        "__mirror-dc2-offset": [(b"[]", b'{"offset":5}')],
    }


def test_a_mirror_begins_behind_the_record_of_its_position(clusters):
    east, west = clusters
    mirror_positions.begin_at(east, west, "east", {("events", 1): 70, ("events", 0): 0})
    key = b'["MirrorSourceConnector",{"cluster":"east","partition":1,"topic":"events"}]'
    assert west.topics == {"mm2-offsets.east.internal": [(key, b'{"offset":69}')]}
