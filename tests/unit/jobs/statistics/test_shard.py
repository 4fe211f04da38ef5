"""The statistics fold: what it tells, and that no cut of the log shows in it."""

import math
from itertools import pairwise

import jsonschema
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.json_schema import json_schema
from jobs.runtime.fold import Input
from jobs.schemas import SCHEMAS
from jobs.statistics.settings import StatisticsSettings
from jobs.statistics.shard import IDLE_SERIES, OutOfOrderError, Shard, fold
from jobs.statistics.windows import NANO

TEN = StatisticsSettings(tumbling_seconds=(10,))
NESTED = StatisticsSettings(tumbling_seconds=(10, 30))
INVENTORY = {"known": True, "type": "virtual", "site": "lund"}


def tick(seconds):
    return orjson.dumps({"tick_unix_nano": int(seconds * NANO)})


def metric(time, value, series="cpu{core=0}", unit="1", **more):
    return {
        "time_unix_nano": int(time * NANO),
        "series": series,
        "name": "cpu",
        "value": value,
        "unit": unit,
        "attributes": {"core": "0"},
        **more,
    }


def line(time, template="disk <*> failed", severity=17):
    return {"time_unix_nano": int(time * NANO), "series": template, "body": "x", "severity_number": severity}


def record(*events, machine="vm-1", id="otlp-0-1-0", inventory=None, kind="metric", **more):
    facts = inventory or INVENTORY
    fields = {"id": id, "machine": machine, "kind": kind, "inventory": facts, "events": list(events)}
    return orjson.dumps(fields | more)


def run(values, settings=TEN, cuts=()):
    """Fold the values, cut into batches before the given positions; all outputs."""
    state, outputs = None, []
    bounds = [0, *sorted(cuts), len(values)]
    for begin, end in pairwise(bounds):
        if begin < end:
            state, told = fold(settings, state, Input("events", 3, range(begin, end), values[begin:end]))
            outputs += told
    return outputs


def data(outputs):
    """The records that are no ticks."""
    return [output for output in outputs if output.key is not None]


def told(outputs):
    return [orjson.loads(output.value) for output in data(outputs)]


def test_a_complete_window_is_told_once_with_all_its_statistics():
    values = [record(metric(101, 2.0), metric(103, 4.0)), record(metric(102, 9.0)), tick(110), tick(125)]
    (found,) = told(run(values))
    assert found == {
        "id": "vm-1/10s/100000000000",
        "machine": "vm-1",
        "inventory": INVENTORY,
        "window": {
            "kind": "tumbling",
            "size_seconds": 10.0,
            "start_unix_nano": 100 * NANO,
            "end_unix_nano": 110 * NANO,
        },
        "source": {"topic": "events", "partition": 3, "first_offset": 0, "last_offset": 1},
        "statistics": [
            {
                "series": "cpu{core=0}",
                "kind": "metric",
                "name": "cpu",
                "unit": "1",
                "attributes": {"core": "0"},
                "count": 3,
                "sum": 15.0,
                "mean": 5.0,
                "variance": 13.0,
                "min": 2.0,
                "max": 9.0,
                "first": 2.0,
                "last": 4.0,
            }
        ],
    }


def test_the_output_says_where_it_came_from_and_when_it_is():
    (window, end) = run([record(metric(101, 2.0)), record(metric(102, 2.0)), tick(112)])
    assert (window.key, window.time_unix_nano) == ("vm-1", 110 * NANO)
    assert window.headers == (("kappa.source", b"events/3/0-1"), ("kappa.schema", b"statistics/1"))
    assert (end.key, end.value, end.time_unix_nano) == (None, tick(112), 112 * NANO)


def test_a_window_waits_for_the_tick_that_ends_it():
    assert data(run([record(metric(101, 2.0)), tick(109.999)])) == []
    assert len(data(run([record(metric(101, 2.0)), tick(109.999), tick(110)], cuts=(2,)))) == 1


def test_without_a_tick_nothing_is_told():
    assert run([record(metric(101, 2.0)), record(metric(500, 2.0))]) == []


def test_windows_come_by_end_then_size_then_machine_and_then_the_tick():
    values = [
        record(metric(121, 1.0), machine="b"),
        record(metric(101, 1.0), machine="b"),
        record(metric(121, 1.0), machine="a"),
        tick(150),
    ]
    outputs = run(values, NESTED)
    shown = [(r["window"]["end_unix_nano"] // NANO, r["window"]["size_seconds"], r["machine"]) for r in told(outputs)]
    assert shown == [(110, 10, "b"), (120, 30, "b"), (130, 10, "a"), (130, 10, "b"), (150, 30, "a"), (150, 30, "b")]
    assert outputs[-1].value == tick(150)


def test_a_larger_window_holds_what_the_smaller_ones_in_it_hold():
    values = [record(metric(time, float(time))) for time in (90, 101, 119)]
    found = {(r["window"]["size_seconds"], r["window"]["start_unix_nano"] // NANO): r for r in told(
        run([*values[:2], tick(101), *values[2:], tick(120)], NESTED, cuts=(1, 3))
    )}  # fmt: skip
    assert set(found) == {(10, 90), (10, 100), (10, 110), (30, 90)}
    assert found[30, 90]["statistics"][0]["sum"] == 310.0


def test_log_lines_are_counted_by_template_with_their_highest_severity():
    values = [record(line(101, severity=9), line(102, severity=17), line(103, "ok", 9), kind="log"), tick(110)]
    (found,) = told(run(values))
    assert found["statistics"] == [
        {"series": "disk <*> failed", "kind": "log", "count": 2, "severity_number": 17},
        {"series": "ok", "kind": "log", "count": 1, "severity_number": 9},
    ]


def test_a_line_without_severity_tells_none():
    bare = {"time_unix_nano": 101 * NANO, "series": "plain", "body": "plain"}
    (found,) = told(run([record(bare, kind="log"), tick(110)]))
    assert found["statistics"] == [{"series": "plain", "kind": "log", "count": 1}]


def test_values_of_two_units_do_not_add_up():
    (found,) = told(run([record(metric(101, 1.0, unit="s"), metric(102, 1000.0, unit="ms")), tick(110)]))
    assert [(s["unit"], s["sum"]) for s in found["statistics"]] == [("ms", 1000.0), ("s", 1.0)]


def test_a_window_has_the_facts_of_its_latest_record():
    moved = {"known": True, "site": "kista"}
    values = [record(metric(104, 1.0), id="b", inventory=moved), record(metric(101, 1.0), id="a"), tick(110)]
    assert told(run(values))[0]["inventory"] == moved


def test_an_event_before_an_earlier_tick_is_an_error_that_names_it():
    values = [tick(110), record(metric(109, 1.0), id="otlp-0-77-0")]
    with pytest.raises(OutOfOrderError, match="otlp-0-77-0 at offset 1 has an event at 109000000000, before the tick"):
        run(values)


def test_what_was_rejected_and_comes_back_after_its_tick_is_left_out():
    late, in_time = metric(101, 9.0), metric(107, 3.0)
    retried = [record(late, id="otlp-0-1-0", retried=True), record(in_time, id="otlp-0-2-0", retried=True)]
    (found,) = told(run([tick(105), *retried, record(metric(106, 2.0)), tick(110)]))
    assert (found["statistics"][0]["count"], found["statistics"][0]["sum"]) == (2, 5.0)


def test_values_beyond_the_largest_float_stay_numbers():
    huge = math.ldexp(1.0, 1023)
    (found,) = told(run([record(metric(101, huge), metric(102, huge)), tick(110)]))
    assert found["statistics"][0]["mean"] == huge
    assert all(found["statistics"][0][name] is not None for name in ("sum", "variance"))


def test_the_state_does_not_grow_with_history():
    """New series in every window, as containers have: names and points of closed windows are forgotten."""
    state, sizes = None, []
    for window in range(40):
        events = [metric(window * 10 + 1, 1.0, series=f"cpu{{pod={window}-{pod}}}") for pod in range(200)]
        batch = Input("events", 0, [2 * window, 2 * window + 1], [record(*events), tick(window * 10 + 10)])
        state, _ = fold(TEN, state, batch)
        sizes.append(len(state))
    shard = Shard.from_bytes(state)
    assert len(shard.series) <= IDLE_SERIES + 200
    assert (len(shard.points), shard.facts) == (0, {})
    assert max(sizes[20:]) <= max(sizes[:20]) * 1.05


def test_the_state_survives_packing():
    shard = Shard((10 * NANO,))
    shard.add([(5, record(metric(101, 2.5))), (6, record(line(103), kind="log")), (7, tick(100))])
    again = Shard.from_bytes(shard.to_bytes())
    assert again.to_bytes() == shard.to_bytes()
    assert (again.tick, again.sizes, again.series, again.facts) == (shard.tick, shard.sizes, shard.series, shard.facts)


machines = st.sampled_from(["vm-1", "vm-2"])
values_of = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.0, -0.0, 0.1, 0.2, 0.3])
metrics = st.builds(
    metric,
    st.integers(0, 400).map(lambda n: n / 10),  # after the last tick
    values_of,
    st.sampled_from(["cpu{core=0}", "cpu{core=1}", "load"]),
    st.sampled_from(["1", "s"]),
)
lines = st.builds(
    line, st.integers(0, 400).map(lambda n: n / 10), st.sampled_from(["up", "down <*>"]), st.integers(0, 24)
)
batches = st.tuples(machines, st.just("metric"), st.lists(metrics, min_size=1, max_size=4)) | st.tuples(
    machines, st.just("log"), st.lists(lines, min_size=1, max_size=4)
)
segments = st.lists(st.tuples(st.integers(1, 25), st.lists(batches, max_size=5)), min_size=1, max_size=6)


def build_log(segments):
    """Each segment: its records, in two orders, none older than the tick before; then the next tick."""
    log, now, number = [], 100, 0
    for step, found in segments:
        records = []
        for machine, kind, events in found:
            shifted = [event | {"time_unix_nano": event["time_unix_nano"] + now * NANO} for event in events]
            records.append(record(*shifted, machine=machine, kind=kind, id=f"id-{number}"))
            number += 1
        now += step
        log.append((records, tick(now)))
    return log


def flat(log):
    return [value for records, end in log for value in (*records, end)]


@given(segments.map(build_log), st.data())
def test_no_cut_of_the_log_shows_in_the_data(log, chosen):
    values = flat(log)
    cuts = chosen.draw(st.sets(st.integers(0, len(values))))
    assert data(run(values, NESTED, cuts)) == data(run(values, NESTED))


@given(segments.map(build_log), st.data())
def test_a_batch_for_each_record_gives_every_tick_and_the_same_data(log, chosen):
    values = flat(log)
    outputs = run(values, NESTED, range(len(values)))
    assert data(outputs) == data(run(values, NESTED))
    assert [output.value for output in outputs if output.key is None] == [end for _, end in log]


@given(segments.map(build_log), st.data())
def test_the_order_of_records_between_two_ticks_does_not_show_but_in_their_offsets(log, chosen):
    shuffled = [(chosen.draw(st.permutations(records)), end) for records, end in log]
    assert without_offsets(run(flat(shuffled), NESTED)) == without_offsets(run(flat(log), NESTED))


def without_offsets(outputs):
    records = told(outputs)
    for found in records:
        found.pop("source")
    return [orjson.dumps(found) for found in records]


@given(segments.map(build_log))
def test_every_record_fits_the_schema(log):
    schema = json_schema("statistics", SCHEMAS["statistics"])
    for found in [orjson.loads(output.value) for output in run(flat(log), NESTED)]:
        jsonschema.validate(found, schema)
