"""Windows over so many values, against a naive reference: the values of each series, one after the other."""

from collections import defaultdict

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.statistics.rows import NANO
from tests.unit.jobs.statistics.test_shard import early, finals, metric, record, run, watermark, windows

TEN = {"kind": "tumbling", "size": "10s"}
END = 1000  # seconds: a watermark that comes long after all values


def declared(**more):
    return windows(TEN, {"kind": "count", "values": 3, "names": ["cpu"], **more})


def sliding(values, slide):
    return windows(TEN, {"kind": "sliding_count", "values": values, "slide": slide, "names": ["cpu"]})


def log(points, step):
    """Points (seconds, series, value), in any order, with a watermark every `step` seconds, and one at the end."""
    values, now = [], 0
    for time, series, value in sorted(points, key=lambda point: point[0] // step):
        while time >= now + step:
            now += step
            values.append(watermark(now))
        values.append(record(metric(time, float(value), f"cpu{{core={series}}}")))
    return [*values, watermark(END)]


def windows_of(outputs, kind="count"):
    """(series, start, end, sum) of each window, by series and start; times in seconds."""
    found = [r for r in outputs if r["window"]["kind"] == kind]
    return sorted(
        (
            r["statistics"][0]["series"],
            r["window"]["start_unix_nano"] / NANO,
            (r["window"]["end_unix_nano"] - 1) / NANO,
            r["statistics"][0]["sum"],
        )
        for r in found
    )


def by_series(points):
    found = defaultdict(list)
    for time, series, value in sorted(points):
        found[f"cpu{{core={series}}}"].append((time, float(value)))
    return found


def expected(groups):
    return sorted((series, one[0][0], one[-1][0], sum(value for _, value in one)) for series, one in groups)


def naive_timeouts(points, values, timeout):
    for series, found in by_series(points).items():
        window = []
        for time, value in found:
            if window and time - window[-1][0] >= timeout:
                yield series, window
                window = []
            window.append((time, value))
            if len(window) == values:
                yield series, window
                window = []
        if window:
            yield series, window


def naive_sliding(points, values, slide):
    for series, found in by_series(points).items():
        for end in range(values, len(found) + 1, slide):
            yield series, found[end - values : end]


points = st.lists(
    st.tuples(st.integers(0, 200), st.integers(0, 2), st.integers(-9, 9)),
    max_size=60,
    unique_by=lambda point: point[:2],
)
steps = st.sampled_from([1, 5, 7, 10, 30])


@settings(max_examples=60, deadline=None)
@given(points, st.integers(2, 5), st.integers(1, 60), steps)
def test_windows_with_a_time_out_are_those_of_the_naive_reference(found, values, timeout, step):
    outputs = finals(run(log(found, step), declared(values=values, timeout=f"{timeout}s")))
    assert windows_of(outputs) == expected(naive_timeouts(found, values, timeout))


@settings(max_examples=60, deadline=None)
@given(points, st.integers(2, 6), st.data(), steps)
def test_sliding_windows_are_those_of_the_naive_reference(found, values, chosen, step):
    slide = chosen.draw(st.integers(1, values - 1))
    outputs = finals(run(log(found, step), sliding(values, slide)))
    assert windows_of(outputs, "sliding_count") == expected(naive_sliding(found, values, slide))


def test_a_window_that_waits_too_long_ends_with_what_it_has():
    values = [record(metric(101, 1.0), metric(104, 2.0)), watermark(123), watermark(130)]
    outputs = run(values, declared(timeout="20s"))
    (found,) = [output for output in outputs if orjson.loads(output.value).get("window", {}).get("kind") == "count"]
    assert found.time_unix_nano == 130 * NANO  # the first end of a pane 20 s after the last value
    assert orjson.loads(found.value)["window"] == {
        "kind": "count",
        "size_seconds": 3.000000001,
        "values": 3,
        "timeout_seconds": 20.0,
        "start_unix_nano": 101 * NANO,
        "end_unix_nano": 104 * NANO + 1,
    }


@pytest.mark.parametrize(("second", "sums"), [(113, [6.0]), (114, [3.0])])
def test_a_value_after_the_time_out_begins_the_next_window(second, sums):
    values = [record(metric(102, 1.0), metric(104, 2.0), metric(second, 3.0)), watermark(120)]
    assert [found[3] for found in windows_of(finals(run(values, declared(timeout="10s"))))] == sums


def test_a_sliding_window_says_what_it_is():
    (first, second) = [
        r
        for r in finals(run([record(*(metric(100 + n, float(n)) for n in range(6))), watermark(120)], sliding(4, 2)))
        if r["window"]["kind"] == "sliding_count"
    ]
    assert first["window"] == {
        "kind": "sliding_count",
        "size_seconds": 3.000000001,
        "values": 4,
        "slide_values": 2,
        "start_unix_nano": 100 * NANO,
        "end_unix_nano": 103 * NANO + 1,
    }
    assert [one["statistics"][0]["sum"] for one in (first, second)] == [6.0, 14.0]
    assert first["id"].startswith(f"vm-1/4-values-each-2/{100 * NANO}-{103 * NANO + 1}/")


def test_an_open_count_window_can_be_followed_by_the_number_of_its_values():
    values = [record(*(metric(100 + 4 * n, 1.0) for n in range(12))), watermark(160)]
    outputs = run(values, declared(values=10, early={"values": 4}))
    running = [(r["until_unix_nano"] // NANO, r["statistics"][0]["count"]) for r in early(outputs)]
    assert running == [(120, 5), (130, 8)]  # at 140 the window is complete, and the next one has 1 of 4
    (final,) = [r for r in finals(outputs) if r["window"]["kind"] == "count"]
    assert {r["id"] for r in early(outputs)} == {final["id"]}


def test_an_open_count_window_can_be_followed_by_time():
    values = [record(*(metric(100 + 4 * n, 1.0) for n in range(6))), watermark(180)]
    outputs = run(values, declared(values=10, early="20s"))
    running = [(r["until_unix_nano"] // NANO, r["statistics"][0]["count"]) for r in early(outputs)]
    assert running == [(120, 5), (140, 6)]  # and nothing came after


def test_a_tumbling_window_can_be_followed_by_the_number_of_its_values():
    log = [
        record(*(metric(120 + 5 * n, 1.0) for n in range(8)), metric(121, 1.0, "load"), metric(155, 1.0, "load")),
        watermark(180),
    ]
    nested = windows(TEN, {"kind": "tumbling", "size": "1m", "early": {"values": 4}})
    running = [
        (r["until_unix_nano"] // NANO, [(one["series"], one["count"]) for one in r["statistics"]])
        for r in early(run(log, nested))
    ]
    assert running == [(140, [("cpu{core=0}", 4)]), (160, [("cpu{core=0}", 8)])]
