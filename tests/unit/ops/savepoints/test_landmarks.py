from dataclasses import dataclass

import pytest

from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from ops.savepoints import landmarks

PLACE = ("telemetry.lines", 0)
TOPICS = load_topics()


@dataclass
class Record:
    """A consumed message, of one partition."""

    at: int
    time: int
    bytes_: bytes
    name: bytes | None = None

    def offset(self) -> int:
        return self.at

    def timestamp(self) -> tuple[int, int]:
        return 1, self.time

    def key(self) -> bytes | None:
        return self.name

    def value(self) -> bytes:
        return self.bytes_


class OneLog:
    """A log of one partition; its last offset may be that of a transaction's marker."""

    bootstrap = "there:9092"

    def __init__(self, *records: Record, start: int = 0, end: int | None = None) -> None:
        self.records, self.start = records, start
        self.end = end if end is not None else max((one.at + 1 for one in records), default=0)

    def starts(self, topics):
        return {PLACE: self.start}

    def ends(self, topics):
        return {PLACE: self.end}

    def at(self, topics, time_ms):
        return {PLACE: min((one.at for one in self.records if one.time >= time_ms), default=self.end)}

    def last_before(self, positions):
        found = {(place, end): [one for one in self.records if one.at < end] for place, end in positions}
        return {position: records[-1] for position, records in found.items() if records}


@pytest.fixture
def mirror(monkeypatch):
    """Makes a log on another cluster, to be read."""

    def make(*records: Record, **own) -> OneLog:
        log = OneLog(*records, **own)
        monkeypatch.setattr(
            landmarks,
            "read_topic",
            lambda bootstrap, topic, begin, partitions: (one for one in log.records if one.at >= begin[PLACE]),
        )
        return log

    return make


def records(*offsets: int) -> list[Record]:
    """The same records at these offsets."""
    return [Record(at, 1000 * number, b"%d" % number, b"vm") for number, at in enumerate(offsets)]


HOME = OneLog(*records(0, 1, 2, 3, 4))


def taken(*positions: int) -> tuple[landmarks.Landmark, ...]:
    return landmarks.take(HOME, [{PLACE: position} for position in positions])


def test_a_landmark_is_the_last_record_before_an_offset():
    (mark,) = taken(3)
    assert (mark.place, mark.position, mark.offset, mark.timestamp_ms) == (PLACE, 3, 2, 2000)
    assert taken(0) == () and [mark.position for mark in taken(4, 2, 4)] == [2, 4]


def test_in_the_log_that_it_was_taken_in_nothing_is_displaced():
    assert landmarks.displaced(HOME, taken(1, 5), TOPICS) == []


def test_where_retention_took_the_record_it_says_nothing():
    shorter = OneLog(*records(0, 1, 2, 3, 4)[3:], start=3)
    assert landmarks.displaced(shorter, taken(2, 3), TOPICS) == []
    assert landmarks.displaced(shorter, taken(4), TOPICS) == []


def test_where_compaction_took_the_record_it_says_nothing():
    left = OneLog(*records(0, 1, 2, 3, 4)[:2], end=5)
    assert landmarks.displaced(left, taken(4), TOPICS)
    compacted = TOPICS[PLACE[0]].model_copy(update={"cleanup": "compact"})
    assert landmarks.displaced(left, taken(4), TopicMap({PLACE[0]: compacted})) == []


@pytest.mark.parametrize("there", [(0, 2, 4, 6, 8), (10, 11, 12, 13, 14)])
def test_in_another_log_it_is_found_by_its_record(mirror, there):
    log, marks = mirror(*records(*there)), taken(2, 4)
    assert landmarks.displaced(log, marks, TOPICS)
    found = landmarks.relocated(log, marks, "savepoint 'sp'")
    assert found == {(PLACE, 2): there[1] + 1, (PLACE, 4): there[3] + 1}
    assert landmarks.moved({PLACE: 4}, found, "savepoint 'sp'") == {PLACE: there[3] + 1}


def test_behind_the_last_record_is_the_end_whatever_markers_are_there(mirror):
    assert landmarks.relocated(mirror(*records(0, 2, 4, 6, 8), end=10), taken(5), "savepoint 'sp'") == {(PLACE, 5): 10}


def test_a_record_that_was_not_mirrored_yet_is_missed(mirror):
    log = mirror(*records(0, 2, 4))
    with pytest.raises(UserError, match=r"before offset 5 of telemetry\.lines/0 is not on there:9092: has it"):
        landmarks.relocated(log, taken(5), "savepoint 'sp'")


def test_the_same_time_alone_is_not_the_same_record(mirror):
    other = [Record(one.at, one.time, one.value() + b"!", one.name) for one in records(0, 2, 4, 6, 8)]
    with pytest.raises(UserError, match="is not on there:9092"):
        landmarks.relocated(mirror(*other), taken(3), "savepoint 'sp'")


def test_records_that_cannot_be_told_apart_are_refused(mirror):
    twice = [Record(0, 1000, b"1", b"vm"), Record(1, 1000, b"1", b"vm"), Record(2, 2000, b"2", b"vm")]
    with pytest.raises(UserError, match="is on there:9092 2 times"):
        landmarks.relocated(mirror(*twice), taken(2), "savepoint 'sp'")


def test_an_offset_without_a_landmark_is_refused_unless_it_is_the_first():
    assert landmarks.moved({PLACE: 0}, {}, "savepoint 'sp'") == {PLACE: 0}
    with pytest.raises(UserError, match=r"nothing was left before offset 7 of telemetry\.lines/0"):
        landmarks.moved({PLACE: 7}, {}, "savepoint 'sp'")
