from contextlib import contextmanager
from types import SimpleNamespace

import pytest
from confluent_kafka import ConsumerGroupState

from infra.errors import UserError
from ops.savepoints.landmarks import Landmark
from ops.site import readers
from ops.site.readers import Reader

PLACES = [("novelties", 0), ("novelties", 1)]


class Cluster:
    """A cluster with consumer groups."""

    def __init__(self, name: str, states: dict[str, ConsumerGroupState]) -> None:
        self.bootstrap, self.states = name, states
        listed = [SimpleNamespace(group_id=group, state=state) for group, state in states.items()]
        answer = SimpleNamespace(result=lambda: SimpleNamespace(valid=listed))
        self.admin = SimpleNamespace(list_consumer_groups=lambda request_timeout: answer)

    def partitions(self, topics):
        return PLACES

    def starts(self, topics):
        return {("novelties", 0): 3, ("novelties", 1): 0}


@pytest.fixture
def offsets(monkeypatch):
    """The committed offsets, by group; an empty mapping of one that has read other topics."""
    committed = {"billing": {PLACES[0]: 40}, "others": {}, "kappa.live.notifier": {PLACES[0]: 7}}
    groups = SimpleNamespace(committed=lambda name, places: committed.get(name, {PLACES[0]: 1}), close=lambda: None)
    monkeypatch.setattr(readers, "Groups", lambda connection: groups)
    return committed


def test_readers_are_all_that_have_read_the_topics_but_the_jobs_of_the_savepoint(offsets):
    names = [
        "billing",
        "others",
        "kappa.live.notifier",
        "kappa.live.detector",
        "kappa.live.detector.sink",
        "kappa.v2.detector",
    ]
    source = Cluster("east:1", dict.fromkeys(names, ConsumerGroupState.EMPTY))
    found = readers.readers_of(source, ["novelties"], {"kappa.live.notifier"})
    assert found == [Reader("billing", {PLACES[0]: 40}), Reader("kappa.live.notifier", {PLACES[0]: 7})]


@pytest.mark.parametrize("at_work", ["east:1", "west:1"])
def test_one_that_still_reads_on_either_side_is_named(at_work):
    one, other = (
        Cluster(name, {"billing": ConsumerGroupState.STABLE if name == at_work else ConsumerGroupState.EMPTY})
        for name in ("east:1", "west:1")
    )
    with pytest.raises(UserError, match=f"group 'billing' still reads on {at_work}; end it, .* --without billing"):
        readers.check_idle([Reader("billing", {})], one, other)
    readers.check_idle([Reader("another", {})], one, other)


@pytest.fixture
def mark(monkeypatch):
    """The only record before a reader's place that is found, with its place at the target."""
    mark = Landmark(topic="novelties", partition=0, position=40, offset=39, timestamp_ms=1, sha256="a")
    monkeypatch.setattr(readers.landmarks, "take", lambda kafka, offsets: (mark,))
    monkeypatch.setattr(readers.landmarks, "relocated", lambda kafka, marks, whose: {(mark.place, 40): 52})
    return mark


def test_a_reader_goes_on_behind_the_record_that_it_read_last(mark):
    # The source has nothing before its second place: retention took it, or there never was a record.
    reader = Reader("billing", {PLACES[0]: 40, PLACES[1]: 6})
    places = readers.places_at(Cluster("west:1", {}), reader, Cluster("east:1", {}))
    assert places == {PLACES[0]: 52, PLACES[1]: 0}


def test_a_place_without_a_record_near_it_is_not_taken_for_the_beginning(mark):
    reader = Reader("billing", {PLACES[0]: 40, PLACES[1]: 600})
    with pytest.raises(
        UserError, match=r"group 'billing': no record is found before its offset 600 of novelties/1; let"
    ):
        readers.places_at(Cluster("west:1", {}), reader, Cluster("east:1", {}))


def test_its_places_are_committed_for_its_group(monkeypatch):
    committed = dict[str, list]()

    @contextmanager
    def open_consumer(connection, group):
        yield SimpleNamespace(commit=lambda offsets, asynchronous: committed.setdefault(group, []).extend(offsets))

    monkeypatch.setattr(readers, "open_consumer", open_consumer)
    readers.go_on_at(Cluster("west:1", {}), "billing", {PLACES[0]: 52})
    assert [(one.topic, one.partition, one.offset) for one in committed["billing"]] == [("novelties", 0, 52)]
