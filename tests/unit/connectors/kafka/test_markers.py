import json

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from connectors.kafka import markers
from connectors.kafka.markers import Marker, ProgressError, ProgressSettings

SETTINGS = ProgressSettings("127.0.0.1:1", "kappa.live.statistics", "run-1")


def test_names_stay_the_same_after_a_restart():
    assert SETTINGS.transactional_id(3) == "kappa.live.statistics-3"
    assert SETTINGS.group == "kappa.live.statistics.sink"


def test_a_marker_is_an_offset_and_its_metadata():
    committed = Marker(done=7, run="run-1", tasks=4).committable("sink.progress", 2)
    assert (committed.topic, committed.partition, committed.offset) == ("sink.progress", 2, 7)
    assert json.loads(committed.metadata) == {"run": "run-1", "tasks": 4}
    assert Marker.of(committed) == Marker(done=7, run="run-1", tasks=4)


def test_a_marker_of_a_java_task_is_read():
    """Jackson writes no spaces."""
    committed = TopicPartition("sink.progress", 0, 3, metadata='{"run":"run-1","tasks":2}')
    assert Marker.of(committed) == Marker(done=3, run="run-1", tasks=2)


@pytest.mark.parametrize(("batch_id", "tasks"), [(6, 4), (7, 4), (7, 9), (8, 1)])
def test_a_marker_lets_its_batch_be_repeated_and_later_ones_follow(batch_id, tasks):
    Marker(done=7, run="run-1", tasks=4).check(SETTINGS, batch_id, tasks)


@pytest.mark.parametrize(
    ("run", "batch_id", "tasks", "message"),
    [
        ("run-0", 7, 4, "belong to checkpoint run-0, this one is run-1"),
        ("run-1", 5, 4, "batch 5 is to be written, but batch 6 was"),
        ("run-1", 6, 3, "batch 6 was begun with 4 tasks and is now tried with 3"),
    ],
)
def test_a_marker_refuses_what_would_lose_or_double_records(run, batch_id, tasks, message):
    with pytest.raises(ProgressError, match=f"query kappa.live.statistics: .*{message}"):
        Marker(done=7, run=run, tasks=4).check(SETTINGS, batch_id, tasks)


class Waiting:
    """A consumer that is told its committed offsets at the third time."""

    def __init__(self):
        self.asked = 0

    def committed(self, partitions, timeout):
        self.asked += 1
        if self.asked < 3:
            raise KafkaException(KafkaError(KafkaError.UNSTABLE_OFFSET_COMMIT))
        return [TopicPartition("sink.progress", 0, 3, metadata='{"run":"run-1","tasks":2}')]


@pytest.mark.parametrize(("seconds", "lines"), [(0, 2), (60, 0)])
def test_who_waits_long_for_a_marker_says_for_what(monkeypatch, caplog, seconds, lines):
    monkeypatch.setattr(markers, "WAITING_SECONDS", seconds)
    assert markers._fetch(SETTINGS, Waiting(), [0]) == {0: Marker(done=3, run="run-1", tasks=2)}
    assert caplog.text.count("offsets of group kappa.live.statistics.sink can't be read since 0 s") == lines
    assert caplog.text.count("'A hanging transaction'") == lines
