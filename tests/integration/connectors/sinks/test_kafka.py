"""The transactional sink on a real broker, through a real Spark session."""

import time
from collections import defaultdict
from dataclasses import replace

import pytest
from confluent_kafka import KafkaError, KafkaException
from py4j.protocol import Py4JJavaError
from pyspark import TaskContext
from pyspark.sql import functions as F

from connectors.kafka.markers import MarkedWriter, ProgressError
from connectors.sinks.kafka import TransactionalSink


def expected(rows):
    return sorted(row["value"] for row in rows)


def output(scene, value, timestamp=1_000):
    """A row as `MarkedWriter.produce` takes it."""
    return (scene.topic, -1, b"machine", value.encode(), timestamp, None)


def test_records_are_readable_once_with_key_time_and_headers(scene):
    rows = [scene.row(number) for number in range(100)]
    summary = TransactionalSink(scene.settings).write(scene.frame(rows), 0)

    found = {m.value().decode(): (m.key().decode(), m.timestamp()[1], m.headers()) for m in scene.read()}
    assert scene.values() == expected(rows)
    assert found == {
        r["value"]: (r["key"], r["timestamp_ms"], [("kappa.source", r["headers"][0]["value"])]) for r in rows
    }
    assert summary.rows_by_topic == {scene.topic: 100}
    assert summary.rows_by_note == {"fifth": 20}
    assert summary.newest_by_origin == {"site-0": 1_000_000, "site-1": 999_999}
    assert summary.skipped_tasks == 0
    assert summary.sources == {("in", 0): (4_000, 5_099), ("in", 1): (4_001, 5_097), ("in", 2): (4_002, 5_098)}
    assert summary.delays == {"in": {0: 1, 1: 10, 2: 10, 3: 9}}  # of -5, 5 to 95, 105 to 195, 205 to 285 ms


def test_a_key_keeps_its_partition_and_its_order_of_time(scene):
    """One task, as only within a task an order is promised."""
    TransactionalSink(scene.settings).write(scene.frame([scene.row(n) for n in range(100)], tasks=1), 0)

    times, partitions = defaultdict(list), defaultdict(set)
    for message in scene.read():
        times[message.partition()].append(message.timestamp()[1])
        partitions[message.key()].add(message.partition())
    assert set(times) == {0, 1}
    assert all(found == sorted(found) for found in times.values())
    assert all(len(found) == 1 for found in partitions.values())


def test_a_record_without_key_follows_the_others_of_its_time_in_its_partition(scene):
    """A watermark comes after the records that it closes."""
    rows = [scene.row(n, key=None if n % 5 == 0 else f"m{n}", partition=1, timestamp_ms=1_000) for n in range(20)]
    TransactionalSink(scene.settings).write(scene.frame(rows, tasks=1), 0)

    keys = [message.key() for message in scene.read()]
    assert [message.partition() for message in scene.read()] == [1] * 20
    assert keys[-4:] == [None] * 4
    assert None not in keys[:-4]


def test_event_times_that_kafka_cannot_hold_become_the_earliest_that_it_can(scene):
    """0 would be stamped with the wall clock, and a negative time stops Java's consumers."""
    rows = [scene.row(0, timestamp_ms=0), scene.row(1, timestamp_ms=-5), scene.row(2, timestamp_ms=None)]
    TransactionalSink(scene.settings).write(scene.frame(rows, tasks=1), 0)

    assert {m.value(): m.timestamp()[1] for m in scene.read()} == {b"value-0": 1, b"value-1": 1, b"value-2": 1}


def test_the_same_batch_again_is_skipped_and_still_tells_its_sources(scene):
    rows = [scene.row(number) for number in range(100)]
    first = TransactionalSink(scene.settings).write(scene.frame(rows), 0)
    again = TransactionalSink(scene.settings).write(scene.frame(rows), 0)

    assert scene.values() == expected(rows)
    assert again.skipped_tasks == 3
    assert again.sources == first.sources


def test_batches_follow_each_other_through_one_sink_and_through_a_new_one(scene):
    batches = [[scene.row(100 * batch + number) for number in range(10)] for batch in range(4)]
    sink = TransactionalSink(scene.settings)
    for number in (0, 1, 2):
        sink.write(scene.frame(batches[number]), number)
    TransactionalSink(scene.settings).write(scene.frame(batches[3]), 3)

    assert scene.values() == expected([row for batch in batches for row in batch])


def test_an_empty_batch_leaves_its_marker(scene):
    sink = TransactionalSink(scene.settings)
    sink.write(scene.frame([]), 0)
    sink.write(scene.frame([scene.row(1)]), 1)

    restarted = TransactionalSink(scene.settings).write(scene.frame([scene.row(1)]), 1)
    assert restarted.skipped_tasks == 3
    assert scene.values() == ["value-1"]


def test_a_task_that_fails_midway_leaves_nothing_and_the_retry_writes_all_once(scene):
    """The poison is a value larger than any message may be, in the middle of one task's rows."""
    good = [scene.row(number) for number in range(99)]
    poison = scene.row(99, value="x" * 11_000_000, timestamp_ms=1_000_000 - 50)
    sink = TransactionalSink(scene.settings)
    with pytest.raises(Py4JJavaError, match=rf"to {scene.topic}, key machine-1, 11000000 bytes"):
        sink.write(scene.frame([*good[:50], poison, *good[50:]]), 0)
    committed = scene.values()
    assert not set(committed) - set(expected(good))
    assert not {"value-49", "value-50", "value-51"} & set(committed), "rows of the failed task are visible"

    mended = [*good[:50], scene.row(99), *good[50:]]
    TransactionalSink(scene.settings).write(scene.frame(mended), 0)
    assert scene.values() == expected(mended)


def test_a_task_that_fails_is_tried_again_in_its_batch(scene):
    """Spark's own retry of a task: what its first attempt wrote stays invisible."""

    @F.udf("string")
    def value(number):
        is_poison = number == 25_000 and TaskContext.get().attemptNumber() == 0
        return "x" * 11_000_000 if is_poison else f"{number:09d}"

    frame = scene.spark.range(0, 50_000, numPartitions=1).select(
        F.lit(scene.topic).alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.col("id").cast("string").alias("key"),
        value("id").alias("value"),
        (F.col("id") + 1).alias("timestamp_ms"),
        F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
    )
    TransactionalSink(scene.settings).write(frame, 0)

    assert scene.values() == [f"{number:09d}" for number in range(50_000)]
    assert len(scene.read("read_uncommitted")) > 50_000, "the first attempt wrote nothing"


def test_a_task_whose_writer_was_fenced_between_two_batches_goes_on_with_a_new_one(scene):
    """Another executor had the task meanwhile."""
    sink = TransactionalSink(scene.settings)
    rows = [scene.row(number) for number in range(18)]
    sink.write(scene.frame(rows[:9]), 0)
    MarkedWriter(scene.settings, 1)
    sink.write(scene.frame(rows[9:]), 1)
    assert scene.values() == expected(rows)


def test_a_writer_that_was_superseded_is_fenced_and_its_rows_never_show(scene):
    zombie = MarkedWriter(scene.settings, 0)
    assert zombie.begin_batch(0, 1)
    zombie.produce([output(scene, "of the zombie")])
    zombie.producer.flush(10)
    assert scene.values("read_uncommitted") == ["of the zombie"]

    heir = MarkedWriter(scene.settings, 0)
    with pytest.raises(KafkaException) as refused:
        zombie.commit()
    assert refused.value.args[0].code() == KafkaError._FENCED
    assert heir.begin_batch(0, 1)
    heir.produce([output(scene, "of the heir")])
    heir.commit()
    zombie.abandon()

    assert scene.values() == ["of the heir"]


def test_a_killed_writer_does_not_hold_up_the_restart(scene):
    """It leaves its marker in an open transaction, which the broker would keep for the transaction timeout: 60 s."""
    killed = MarkedWriter(scene.settings, 1)
    killed.begin_batch(0, 3)
    killed.produce([output(scene, "of the dead")])
    killed.producer.flush(10)

    start = time.monotonic()
    rows = [scene.row(number) for number in range(9)]
    TransactionalSink(scene.settings).write(scene.frame(rows), 0)
    assert time.monotonic() - start < 30
    assert scene.values() == expected(rows)


def test_a_batch_that_was_committed_in_part_is_completed(scene):
    """Killed between the commits of its tasks: the batch's rows of task 1 are there, those of 0 and 2 are not."""
    rows = [scene.row(number) for number in range(9)]
    writer = MarkedWriter(scene.settings, 1)
    writer.begin_batch(0, 3)
    writer.produce([output(scene, row["value"]) for row in rows[3:6]])
    writer.commit()

    summary = TransactionalSink(scene.settings).write(scene.frame(rows), 0)
    assert summary.skipped_tasks == 1
    assert scene.values() == expected(rows)


def test_a_commit_whose_answer_was_lost_is_found_by_the_next_writer(scene):
    first = MarkedWriter(scene.settings, 0)
    first.begin_batch(0, 1)
    first.produce([output(scene, "once")])
    first.commit()
    del first  # dead before it told anyone

    assert MarkedWriter(scene.settings, 0).begin_batch(0, 1) is False
    assert scene.values() == ["once"]


def test_another_number_of_tasks_for_a_begun_batch_is_refused(scene):
    rows = [scene.row(number) for number in range(9)]
    TransactionalSink(scene.settings).write(scene.frame(rows, tasks=3), 0)

    with pytest.raises(ProgressError, match="batch 0 was begun with 3 tasks and is now tried with 2"):
        TransactionalSink(scene.settings).write(scene.frame(rows, tasks=2), 0)
    TransactionalSink(scene.settings).write(scene.frame([scene.row(10)], tasks=2), 1)
    assert scene.values() == sorted([*expected(rows), "value-10"])


def test_another_number_of_tasks_is_refused_by_a_sink_that_goes_on_after_a_failure(scene):
    sink = TransactionalSink(scene.settings)
    rows = [scene.row(number) for number in range(9)]
    sink.write(scene.frame(rows, tasks=3), 0)
    partial = MarkedWriter(scene.settings, 2)
    partial.begin_batch(1, 3)
    partial.commit()

    with pytest.raises(Py4JJavaError):
        sink.write(scene.frame([scene.row(9, value="x" * 11_000_000), *rows], tasks=3), 1)
    with pytest.raises(ProgressError, match="begun with 3 tasks and is now tried with 2"):
        sink.write(scene.frame(rows, tasks=2), 1)


def test_another_checkpoint_is_refused_before_a_good_writer_is_fenced(scene):
    TransactionalSink(scene.settings).write(scene.frame([scene.row(1)]), 0)
    working = MarkedWriter(scene.settings, 0)
    working.begin_batch(1, 3)
    working.produce([output(scene, "goes on")])

    with pytest.raises(ProgressError, match=r"belong to checkpoint run-1, this one is run-2.*A lost checkpoint"):
        TransactionalSink(scene.of_run("run-2")).write(scene.frame([scene.row(1)]), 0)
    working.commit()
    assert scene.values() == ["goes on", "value-1"]


def test_a_batch_older_than_the_markers_is_refused(scene):
    sink = TransactionalSink(scene.settings)
    for batch in range(3):
        sink.write(scene.frame([scene.row(batch)]), batch)

    with pytest.raises(ProgressError, match="batch 1 is to be written, but batch 2 was: the checkpoint is an old copy"):
        TransactionalSink(scene.settings).write(scene.frame([scene.row(1)]), 1)
    assert scene.values() == ["value-0", "value-1", "value-2"]


def test_markers_that_are_gone_are_missed(scene):
    """The broker drops a group's offsets after offsets.retention.minutes without a commit."""
    with pytest.raises(ProgressError, match="no progress marker says that batch 6 was"):
        TransactionalSink(scene.settings).write(scene.frame([scene.row(1)]), 7)
    assert scene.values() == []


def test_more_tasks_than_the_progress_topic_has_partitions_are_refused(scene):
    with pytest.raises(ProgressError, match=r"9 tasks, but topic .* has 8 partitions"):
        TransactionalSink(scene.settings).write(scene.frame([scene.row(1)], tasks=9), 0)


def test_a_second_query_has_its_own_markers(scene):
    other = replace(scene.settings, query=f"{scene.name}-other")
    TransactionalSink(scene.settings).write(scene.frame([scene.row(1)]), 0)
    TransactionalSink(other).write(scene.frame([scene.row(2)]), 0)
    assert scene.values() == ["value-1", "value-2"]
