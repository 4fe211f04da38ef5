"""Watermarks: what they promise, by cases and in simulated logs."""

from dataclasses import dataclass, replace

import orjson
from hypothesis import given
from hypothesis import strategies as st

from connectors.sinks.kafka import Span
from infra.contract.lateness import AllowedLateness, Decision
from infra.contract.topics import Lateness, load_topics
from jobs.runtime.last_hour import REMEMBERED_MS
from jobs.runtime.watermarks import (
    ENOUGH,
    LARGEST_MARGIN_MS,
    LEAST_MARGIN_MS,
    Skew,
    WatermarkTracker,
    watermark_records,
)

LATENESS = 20_000
A, B = ("metrics", 0), ("metrics", 1)


def watermark_tracker():
    return WatermarkTracker(allowed())


def allowed(*decisions):
    """What is learned of metrics; logs always have 5 s."""
    return AllowedLateness({"metrics": Lateness(max="20s", share=0.01), "logs": Lateness(max="5s")}, decisions)


def watermark_at(timestamp, lateness=LATENESS):
    return timestamp - lateness - LARGEST_MARGIN_MS


def at(times):
    """One record of each partition at its time."""
    return {partition: Span(time, time) for partition, time in times.items()}


def test_a_partition_read_to_its_end_watermarks_its_lateness_behind_its_newest_record():
    assert watermark_tracker().advance({A: 10}, {A: 10}, at({A: 100_000})) == watermark_at(100_000)


def test_a_watermark_is_told_once():
    one = watermark_tracker()
    one.advance({A: 10}, {A: 10}, at({A: 100_000}))
    assert one.advance({A: 11}, {A: 11}, at({A: 100_000})) is None
    assert one.advance({A: 12}, {A: 12}, at({A: 100_001})) == watermark_at(100_001)


def test_a_partition_that_is_behind_holds_the_watermark_where_it_stands():
    assert watermark_tracker().advance({A: 10, B: 10}, {A: 10, B: 99}, at({A: 100_000, B: 60_000})) == watermark_at(
        60_000
    )


def test_an_idle_partition_holds_nothing_back():
    one = watermark_tracker()
    one.advance({A: 10, B: 10}, {A: 10, B: 10}, at({A: 100_000, B: 60_000}))
    assert one.advance({A: 20, B: 10}, {A: 20, B: 10}, at({A: 300_000})) == watermark_at(300_000)


def test_a_partition_that_never_had_a_record_holds_nothing_back():
    assert watermark_tracker().advance({A: 10, B: 0}, {A: 10, B: 0}, at({A: 100_000})) == watermark_at(100_000)


def test_records_that_came_since_to_a_partition_not_yet_seen_hold_every_watermark():
    """After a restart nobody knows how old they are."""
    assert watermark_tracker().advance({A: 10, B: 0}, {A: 10, B: 1}, at({A: 100_000})) is None


def test_without_a_record_there_is_no_watermark():
    assert watermark_tracker().advance({A: 10}, {A: 10}, {}) is None


def test_each_topic_has_its_own_lateness():
    logs = ("logs", 0)
    assert watermark_tracker().advance({logs: 1}, {logs: 1}, at({logs: 100_000})) == watermark_at(
        100_000, lateness=5_000
    )
    assert watermark_tracker().advance(
        {A: 9, logs: 1}, {A: 9, logs: 1}, at({A: 100_000, logs: 100_000})
    ) == watermark_at(100_000)


def test_a_shorter_lateness_holds_from_its_beginning_on():
    """But for what may still come of before: by so much as is left for the skew."""
    one = WatermarkTracker(allowed(Decision(130_000, 2_000)))
    last = 130_000 + LARGEST_MARGIN_MS
    assert one.advance({A: 10}, {A: 10}, at({A: last - 1})) == watermark_at(last - 1)
    assert one.advance({A: 11}, {A: 11}, at({A: last})) == watermark_at(last, lateness=2_000)


def test_a_longer_lateness_holds_the_watermark_before_it_begins():
    """What comes from its beginning on may be older than the newest watermark would otherwise be."""
    one = WatermarkTracker(allowed(Decision(0, 2_000), Decision(130_000, 12_000)))
    assert one.advance({A: 10}, {A: 10}, at({A: 119_000})) == watermark_at(119_000, lateness=2_000)
    assert one.advance({A: 11}, {A: 11}, at({A: 129_000})) == 130_000 - 12_000
    assert one.advance({A: 12}, {A: 12}, at({A: 136_000})) == watermark_at(136_000, lateness=12_000)


def test_an_earlier_record_does_not_take_a_watermark_back():
    one = watermark_tracker()
    one.advance({A: 10}, {A: 10}, at({A: 100_000}))
    assert one.advance({A: 11}, {A: 12}, at({A: 99_000})) is None
    assert one.watermark_ms == watermark_at(100_000)


def read_alternately(one, times, skew):
    """Both partitions are read to their ends each second; B's records are stamped earlier than A's by the skew."""
    for second in range(times):
        now, end = 1_000_000 + second * 1_000, {A: second, B: second}
        one.advance(end, end, at({A: now}))
        one.advance(end, end, at({B: now - skew}))
    return one


def test_records_in_the_order_of_their_timestamps_leave_the_least_margin():
    one = read_alternately(watermark_tracker(), ENOUGH, skew=0)
    assert one.skew.margin_ms == LEAST_MARGIN_MS
    assert one.advance({A: 999}, {A: 999}, at({A: 9_000_000})) == 9_000_000 - LATENESS - LEAST_MARGIN_MS


def test_the_margin_is_twice_the_skew_that_was_measured_but_no_more_than_the_largest():
    assert read_alternately(watermark_tracker(), ENOUGH, skew=300).skew.margin_ms == LEAST_MARGIN_MS + 600
    assert read_alternately(watermark_tracker(), ENOUGH, skew=60_000).skew.margin_ms == LARGEST_MARGIN_MS


def test_until_the_skew_was_measured_often_the_margin_is_the_largest():
    assert read_alternately(watermark_tracker(), ENOUGH // 4, skew=0).skew.margin_ms == LARGEST_MARGIN_MS


def test_a_partition_of_a_backlog_is_measured_by_itself():
    """It may be as far behind the others as it likes."""
    one = watermark_tracker()
    for second in range(ENOUGH):
        end, latest = {A: second, B: second}, {A: second, B: 10**6}
        one.advance(end, latest, at({A: 1_000_000 + second, B: 500_000 + second - 200 * (second % 2)}))
    assert one.skew.margin_ms == LEAST_MARGIN_MS + 2 * 199


def test_a_skew_is_forgotten_after_an_hour():
    skew = Skew()
    skew.observe(1_000, 100)
    for _ in range(ENOUGH):
        skew.observe(REMEMBERED_MS, REMEMBERED_MS)
    assert skew.margin_ms == LEAST_MARGIN_MS + 1_800
    skew.observe(REMEMBERED_MS + 120_000, REMEMBERED_MS + 120_000)
    assert skew.margin_ms == LEAST_MARGIN_MS


@dataclass(frozen=True)
class Step:
    """Some records are appended, then some are read: (partition, ms since the last, delay of the event), then reads."""

    appended: list[tuple[int, int, int]]
    reads: list[int]
    appended_meanwhile: list[tuple[int, int, int]]
    decided: tuple[int, int] | None = None  # when it begins, in ms after the newest record, and how late events may be


PARTITIONS = 3
appends = st.lists(
    st.tuples(st.integers(0, PARTITIONS - 1), st.integers(0, 30_000), st.integers(0, LATENESS)), max_size=6
)
steps = st.lists(
    st.builds(
        Step,
        appends,
        st.lists(st.integers(0, 5), min_size=PARTITIONS, max_size=PARTITIONS),
        appends,
        st.none() | st.tuples(st.integers(LATENESS, 60_000), st.integers(0, LATENESS)),
    ),
    max_size=12,
)


class Log:
    """Partitions of one broker: (Kafka timestamp, event time) in ms, stamped by one clock as they are appended.

    Events are as late as is allowed, or less: others don't pass enrichment.
    """

    def __init__(self):
        self.allowed = allowed()
        self.now = 1_000_000
        self.partitions = [[] for _ in range(PARTITIONS)]
        self.read = [0] * PARTITIONS

    def append(self, records):
        for partition, pause, delay in records:
            self.now += pause
            self.partitions[partition].append((self.now, self.now - min(delay, self.allowed.at("metrics", self.now))))

    def take(self, counts):
        """Read on; the batch's records by partition."""
        taken = {}
        for number, count in enumerate(counts):
            records = self.partitions[number][self.read[number] : self.read[number] + count]
            self.read[number] += len(records)
            if records:
                taken["metrics", number] = records
        return taken

    def ends(self, positions):
        return {("metrics", number): position for number, position in enumerate(positions)}

    def unread(self):
        return [record for n, partition in enumerate(self.partitions) for record in partition[self.read[n] :]]


def run_step(log, ticking, step):
    log.append(step.appended)
    if step.decided:
        begin, lateness = step.decided
        decision = Decision(log.now + begin, lateness)
        log.allowed.decide([decision])
        ticking.lateness.decide([decision])
    batch = log.take(step.reads)
    end = log.ends(log.read)
    log.append(step.appended_meanwhile)
    latest = log.ends([len(partition) for partition in log.partitions])
    read = {partition: Span(records[0][0], records[-1][0]) for partition, records in batch.items()}
    return ticking.advance(end, latest, read)


@given(steps, appends, st.booleans())
def test_no_event_older_than_a_watermark_follows_it_and_watermarks_rise(steps, later, restarted):
    log, ticking, last = Log(), watermark_tracker(), 0
    for number, step in enumerate(steps):
        if restarted and number == len(steps) // 2:
            ticking, last = WatermarkTracker(allowed(*log.allowed.decisions)), 0
        watermark = run_step(log, ticking, step)
        if watermark is not None:
            assert watermark > last
            last = watermark
            assert all(event >= watermark for _, event in log.unread()), (
                "an event in the log is older than the watermark"
            )
    highest = ticking.watermark_ms
    log.append(later)
    assert all(event >= highest for _, event in log.unread()), "a later event is older than the last watermark"


@given(steps)
def test_a_log_that_is_read_to_its_end_brings_the_watermark_to_its_end(steps):
    log, ticking = Log(), watermark_tracker()
    for step in steps:
        run_step(log, ticking, replace(step, decided=None))
    run_step(log, ticking, Step([(0, 1, 0)], [10**6] * PARTITIONS, []))
    assert ticking.watermark_ms == watermark_at(log.now)


def test_watermark_records_go_to_every_partition_in_nanoseconds():
    events = load_topics()["events"]
    records = watermark_records(events, 1_760_000_000_123)
    assert [(topic, partition) for topic, partition, *_ in records] == [("events", n) for n in range(events.partitions)]
    for _, _, key, value, timestamp, headers in records:
        assert (key, timestamp, headers) == (None, 1_760_000_000_123, None)
        assert orjson.loads(value) == {"watermark_unix_nano": 1_760_000_000_123_000_000}
