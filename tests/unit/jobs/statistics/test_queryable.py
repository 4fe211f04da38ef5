import pytest

from jobs.runtime.queryable import InvalidQuestionError, NotKnownError
from jobs.runtime.shard_state import Input
from jobs.statistics.queryable import WindowsQuestion
from jobs.statistics.rows import NANO
from jobs.statistics.shard import Shard
from tests.unit.jobs.saved_shards import put, saved_shards
from tests.unit.jobs.statistics.test_shard import ALL, NESTED, line, metric, record, watermark


@pytest.fixture
def ask(tmp_path):
    """Asks about the state after some records."""

    def asked(windows, *records, machine="vm-1"):
        shard = Shard(windows)
        shard.feed(Input("events", 0, range(len(records)), records))
        put(tmp_path, Shard(windows).dump(), shard=0)
        put(tmp_path, shard.dump(), shard=1)
        return WindowsQuestion(windows).answer(saved_shards(tmp_path), {"machine": machine})

    return asked


def of_series(answer):
    return {
        one["series"]: [
            (window["size_seconds"], window["start_unix_nano"] // NANO, window["count"], window.get("mean"))
            for window in one["windows"]
        ]
        for one in answer["series"]
    }


def test_what_has_come_since_the_last_window_and_what_the_larger_one_has(ask):
    answer = ask(
        NESTED,
        record(metric(1, 2.0), metric(6, 4.0), metric(3, 9.0, series="mem")),
        record(metric(4, 99.0), machine="vm-2"),
        record(line(2), line(5), kind="log"),
        watermark(11),
        record(metric(12, 7.0), metric(14, 9.0)),
        record(line(13), kind="log"),
    )
    assert (answer["machine"], answer["shard"], answer["watermark_unix_nano"]) == ("vm-1", 1, 11 * NANO)
    assert of_series(answer) == {
        "cpu{core=0}": [(10, 10, 2, 8.0), (30, 0, 2, 3.0)],
        "mem": [(30, 0, 1, 9.0)],
        "disk <*> failed": [(10, 10, 1, None), (30, 0, 2, 17.0)],
    }


def test_a_window_that_is_over_is_not_open(ask):
    answer = ask(NESTED, record(metric(1, 2.0)), record(metric(25, 3.0)), watermark(31), record(metric(32, 5.0)))
    assert of_series(answer) == {"cpu{core=0}": [(10, 30, 1, 5.0)]}


def test_the_readings_of_a_counter_are_no_values(ask):
    counter = {"type": "sum", "temporality": "cumulative", "monotonic": True}
    answer = ask(NESTED, record(metric(1, 100.0, **counter), metric(6, 160.0, **counter)))
    assert of_series(answer) == {"cpu{core=0}": [(10, 0, 2, None)]}


def test_other_kinds_of_windows_are_left_out(ask):
    answer = ask(ALL, record(metric(1, 2.0)), watermark(11), record(metric(12, 4.0)))
    assert of_series(answer) == {"cpu{core=0}": [(10, 10, 1, 4.0), (30, 0, 1, 2.0)]}


def test_what_is_not_known_is_said(ask):
    with pytest.raises(NotKnownError, match="machine 'none'"):
        ask(NESTED, record(metric(1, 2.0)), machine="none")
    with pytest.raises(InvalidQuestionError, match="machine: is missing"):
        ask(NESTED, record(metric(1, 2.0)), machine="")
