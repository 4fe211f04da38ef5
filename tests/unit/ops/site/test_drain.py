import time
from types import SimpleNamespace

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from ops.savepoints.landmarks import Landmark
from ops.site import drain as module
from ops.site.drain import Drain

TELEMETRY, INVENTORY = load_topics()["telemetry.lines"], load_topics()["inventory"]
NOW_MS = int(time.time() * 1000)
LAST = {("telemetry.lines", 0): (NOW_MS, "a"), ("telemetry.lines", 1): (NOW_MS, "b"), ("inventory", 0): (1, "c")}


class Cluster:
    """A cluster of which only the last record of each partition, its time and sum, matters."""

    def __init__(self, name: str, last: dict, ends: list[dict] | None = None, partitions: int = 2) -> None:
        self.bootstrap, self.last, self._partitions = name, last, partitions
        self._ends, self.open = ends or [{}], False
        self.admin = SimpleNamespace(list_topics=lambda timeout: SimpleNamespace(topics=dict.fromkeys(self._topics())))

    def _topics(self) -> list[str]:
        return ["telemetry.lines", "inventory", "mm2-offsets.dc1.internal"]

    def partitions(self, names):
        return [(name, number) for name in names for number in range(self._partitions)]

    def ends(self, names):
        now = self._ends.pop(0) if len(self._ends) > 1 else self._ends[0]
        return {place: now.get(place, 9) for place in self.partitions(names)}


@pytest.fixture(autouse=True)
def clusters(monkeypatch):
    """The last records are those of the cluster; a partition's end is further on while a transaction is open."""

    def take(kafka, _):
        return [
            Landmark(topic=topic, partition=number, position=9, offset=8, timestamp_ms=at, sha256=value)
            for (topic, number), (at, value) in kafka.last.items()
        ]

    monkeypatch.setattr(module.landmarks, "take", take)
    clock = {"message.timestamp.type": "CreateTime"}
    monkeypatch.setattr(module, "latest_offsets", lambda admin, ends: dict(ends))
    monkeypatch.setattr(module, "read_limits", lambda _, names: SimpleNamespace(topics=dict.fromkeys(names, clock)))
    monkeypatch.setattr(module, "PAUSE_SECONDS", 0.0)


def drain(source: Cluster, target: Cluster) -> list[int]:
    told = list[int]()
    Drain(source, target, [TELEMETRY, INVENTORY], ["mm2-offsets.dc1.internal"]).wait(0.05, told.append)
    return told


def test_it_is_over_once_the_last_records_are_the_same_and_nothing_comes_any_more():
    assert drain(Cluster("east:1", LAST), Cluster("west:1", LAST)) == [0]  # looked at twice


@pytest.mark.parametrize(
    "there", [{("telemetry.lines", 1): (NOW_MS, "x")}, {("telemetry.lines", 1): (NOW_MS - 1, "b")}]
)
def test_another_last_record_is_waited_for(there):
    with pytest.raises(
        UserError, match=r"west:1: does not end with the last record that east:1 has of telemetry.lines/1;"
    ):
        drain(Cluster("east:1", LAST), Cluster("west:1", LAST | there))


def test_a_partition_without_a_record_there_is_waited_for():
    there = {place: last for place, last in LAST.items() if place != ("inventory", 0)}
    with pytest.raises(UserError, match="has of inventory/0; does the mirror of everything run"):
        drain(Cluster("east:1", LAST), Cluster("west:1", there))


def test_what_is_due_for_deletion_need_not_be_there_but_compacted_topics_keep_theirs():
    old = int(NOW_MS - 1000 * TELEMETRY.retention.total_seconds() - 1000)
    source = Cluster("east:1", LAST | {("telemetry.lines", 0): (old, "a")})
    there = {place: last for place, last in LAST.items() if place != ("telemetry.lines", 0)}
    assert drain(source, Cluster("west:1", there)) == [0]


def test_a_partition_that_is_empty_at_the_source_says_nothing():
    here = {place: last for place, last in LAST.items() if place != ("telemetry.lines", 1)}
    assert drain(Cluster("east:1", here), Cluster("west:1", LAST)) == [0]


def test_who_still_writes_is_named_by_the_topics():
    grows = [{("telemetry.lines", 0): end} for end in range(100_000)]
    with pytest.raises(
        UserError, match=r"east:1: still gets records of telemetry.lines; stop the jobs, the mirrors and"
    ):
        drain(Cluster("east:1", LAST, grows), Cluster("west:1", LAST))


def test_an_open_transaction_beside_them_is_waited_for(monkeypatch):
    behind = {("mm2-offsets.dc1.internal", 0): 10}
    monkeypatch.setattr(module, "latest_offsets", lambda admin, ends: {**ends, **behind})
    with pytest.raises(UserError, match=r"still gets records of mm2-offsets.dc1.internal"):
        drain(Cluster("east:1", LAST), Cluster("west:1", LAST))


def test_other_numbers_of_partitions_are_refused_at_once():
    with pytest.raises(UserError, match="topic 'inventory': has another number of partitions on west:1 than on east:1"):
        drain(Cluster("east:1", LAST), Cluster("west:1", LAST, partitions=3))


def test_a_topic_that_is_not_there_is_named():
    target = Cluster("west:1", LAST)
    target._topics = lambda: ["inventory"]
    with pytest.raises(UserError, match=r"topic 'telemetry.lines' is not on west:1; make it there"):
        drain(Cluster("east:1", LAST), target)


def test_a_topic_that_gives_records_other_times_is_named(monkeypatch):
    limits = SimpleNamespace(topics={"inventory": {"message.timestamp.type": "LogAppendTime"}})
    monkeypatch.setattr(module, "read_limits", lambda admin, names: limits)
    with pytest.raises(UserError, match=r"topic 'inventory': has message\.timestamp\.type=LogAppendTime on west:1, so"):
        drain(Cluster("east:1", LAST), Cluster("west:1", LAST))
