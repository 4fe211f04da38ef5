"""What becomes of series, templates and machines that are too many, and of windows that are too large."""

from functools import partial

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from infra.contract.dead_letters import TOPIC as REJECTED
from infra.contract.json_schema import json_schema
from infra.contract.schemas import SCHEMAS
from jobs.statistics.limits import Limits
from jobs.statistics.parts import in_parts
from jobs.statistics.shard import IDLE_SERIES, Shard
from tests.unit.jobs.folds import cuts_of, fed
from tests.unit.jobs.statistics.test_shard import TEN, finals, line, log_of, metric, record, watermark, windows

FEW = Limits(series=3, templates=2, machines=2, record_bytes=4_000_000)
SHORT = windows({"kind": "tumbling", "size": "10s"}, state_ttl="30s")


def run(values, limits=FEW, declared=TEN, cuts=()):
    return fed(partial(Shard, declared, limits=limits), log_of(values), dict.fromkeys(cuts, False))[1]


def dead_letters(outputs):
    found = [orjson.loads(one.value) for one in outputs if one.topic == REJECTED]
    for one in found:
        Draft202012Validator(json_schema("rejected", SCHEMAS["rejected"])).validate(one)
    return found


def kept(outputs):
    return [
        (one["machine"], [row["series"] for row in one["statistics"]])
        for one in finals([output for output in outputs if output.topic is None])
    ]


def scrape(time, series, machine="vm-1"):
    return record(*(metric(time, 1.0, name) for name in series), machine=machine)


def test_series_beyond_the_limit_are_left_out_and_counted_once_a_machine_and_window():
    values = [
        scrape(101, "abcdef"),
        scrape(102, "abcdef"),
        scrape(103, "gab"),
        scrape(104, "a", "vm-2"),
        watermark(110),
    ]
    outputs = run([*values, scrape(111, "abz"), watermark(120)])
    assert kept(outputs) == [("vm-1", ["a", "b", "c"]), ("vm-2", ["a"]), ("vm-1", ["a", "b"])]
    first, second = dead_letters(outputs)
    assert first == {
        "id": first["id"],
        "stage": "statistics",
        "code": "too_many_series",
        "reason": "the machine has 3 series, as many as may be (KAPPA_STATISTICS_SERIES_PER_MACHINE): 7 events of "
        "others were left out in 10 s, for example of d, e, f",
        "source": {"topic": "events", "partition": 3, "offset": 0, "last_offset": 2, "timestamp_unix_milli": 100_000},
        "events": 7,
        "machine": "vm-1",
    }
    assert (second["events"], second["source"]["offset"]) == (1, 5)
    assert second["id"] != first["id"]


def test_all_events_are_accounted_for():
    values = [scrape(100 + n, [f"s{n * k}" for k in range(20)]) for n in range(9)]
    outputs = run([*values, watermark(110)])
    points = sum(row["count"] for one in finals([o for o in outputs if o.topic is None]) for row in one["statistics"])
    assert points + sum(one["events"] for one in dead_letters(outputs)) == 180


def test_log_templates_have_a_limit_of_their_own():
    lines = record(*(line(101, name) for name in "pqrs"), kind="log")
    outputs = run([scrape(101, "abc"), lines, watermark(110)])
    assert [sorted(series) for _, series in kept(outputs)] == [["a", "b", "c", "p", "q"]]
    (found,) = dead_letters(outputs)
    assert (found["events"], found["reason"].partition(",")[0]) == (2, "the machine has 2 log templates")


def test_machines_beyond_the_limit_are_one_dead_letter_a_window():
    outputs = run([*(scrape(101, "ab", f"vm-{number}") for number in range(9)), watermark(110)])
    assert [machine for machine, _ in kept(outputs)] == ["vm-0", "vm-1"]
    (found,) = dead_letters(outputs)
    assert (found["events"], found["source"]["offset"], found["source"]["last_offset"]) == (14, 2, 8)
    assert "machine" not in found
    assert found["reason"].endswith("for example of vm-2, vm-3, vm-4")


def test_shards_of_one_worker_share_no_machines():
    for shard in range(3):
        assert kept(run([scrape(101, "a", f"vm-{shard}"), watermark(110)])) == [(f"vm-{shard}", ["a"])]


def test_columns_that_are_cut_off_and_rows_of_labels_are_left_out_alike():
    events = {
        "time_unix_nano": [101 * 10**9, 102 * 10**9, 103 * 10**9],
        "value": [1.0, 2.0, 3.0],
        "labels": [3, 0, 3],
        "series": ["a", "b", "c", "d"],
        "unit": ["1"] * 4,
        "name": ["n"] * 4,
    }
    raw = orjson.dumps({"id": "x", "machine": "vm-1", "kind": "metric", "inventory": {}, "events": events})
    outputs = run([raw, raw, watermark(110)])
    assert kept(outputs) == [("vm-1", ["a"])]
    (found,) = dead_letters(outputs)
    assert (found["events"], found["reason"][-8:]) == (4, "ple of d")


def test_there_is_room_again_once_old_series_are_silent():
    values = [scrape(101, "abc"), watermark(110), scrape(111, "c"), watermark(120)]
    values += [scrape(141, "cde"), watermark(150), scrape(151, "cde"), watermark(160), scrape(171, "c"), watermark(180)]
    outputs = run(values, declared=SHORT)
    assert kept(outputs)[-3:] == [("vm-1", ["c"]), ("vm-1", ["c", "d", "e"]), ("vm-1", ["c"])]
    assert [one["events"] for one in dead_letters(outputs)] == [2]


def test_there_is_room_for_machines_again_once_old_ones_are_silent():
    values = [scrape(101, "a", "vm-1"), scrape(101, "a", "vm-2"), watermark(110)]
    values += [scrape(150, "a", "vm-2"), watermark(160), scrape(161, "a", "vm-3"), watermark(170)]
    outputs = run(values, declared=SHORT)
    assert kept(outputs)[-1] == ("vm-3", ["a"])
    assert dead_letters(outputs) == []


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_cut_of_the_log_leaves_out_the_same(data):
    values = []
    for step in range(30):
        names = [f"s{(step // 4) * 3 + k}" for k in range(5)]
        values += [scrape(100 + 5 * step, names), scrape(100 + 5 * step, "a", f"vm-{step // 8}")]
        values += [watermark(100 + 5 * step)] if step % 3 else []
    whole = fed(partial(Shard, SHORT, limits=FEW), log_of(values), {})
    state, outputs = fed(partial(Shard, SHORT, limits=FEW), log_of(values), data.draw(cuts_of(len(values))))
    assert sorted(o.value for o in outputs if o.key) == sorted(o.value for o in whole[1] if o.key)
    assert state == whole[0]
    assert len(dead_letters(outputs)) > 3


def test_a_hostile_machine_costs_bounded_state_and_output():
    limits = Limits(series=50)
    names = ([f"s{step * 100 + k}" for k in range(100)] for step in range(60))
    values = [
        one for step, new in enumerate(names) for one in (scrape(100 + 10 * step, new), watermark(110 + 10 * step))
    ]
    state, outputs = fed(partial(Shard, SHORT, limits=limits), log_of(values), {})
    assert len(orjson.loads(state["value/series"])) <= 50 < IDLE_SERIES
    assert len(dead_letters(outputs)) <= 60
    assert all(len(one.value) < 30_000 for one in outputs)


def large(series=400, label=100):
    columns = {
        "series": [f"{n:0{label}}" for n in range(series)],
        "mean": [n / 7 for n in range(series)],
        "rate": [None] * (series - 1) + [True],
    }
    return orjson.dumps({"id": "vm-1/10s/1", "machine": "vm-1", "window": {"kind": "tumbling"}, "statistics": columns})


def test_a_record_that_is_small_enough_stays_as_it_is():
    assert in_parts(large(), len(large())) == [large()]


@pytest.mark.parametrize("most", [5_000, 20_000, 40_000])
def test_a_large_record_is_cut_into_parts_that_hold_all_of_it(most):
    parts = in_parts(large(), most)
    assert parts == in_parts(large(), most)
    assert max(map(len, parts)) <= most
    found = [orjson.loads(part) for part in parts]
    assert [(one["part"], one["parts"], one["id"]) for one in found] == [
        (number, len(parts), f"vm-1/10s/1/{number}") for number in range(1, len(parts) + 1)
    ]
    for name in ("series", "mean"):
        joined = [cell for one in found for cell in one["statistics"][name]]
        assert joined == orjson.loads(large())["statistics"][name]
    assert "rate" not in found[0]["statistics"]
    assert found[-1]["statistics"]["rate"][-1] is True


def test_a_series_that_is_too_large_alone_is_not_cut():
    assert len(in_parts(large(3, label=5_000), 2_000)) == 3


def test_a_window_with_36_000_series_is_several_records_of_the_schema():
    limits = Limits(series=40_000, record_bytes=500_000)
    values = [scrape(101, [f"requests{{path={n:09}}}" for n in range(6_000)]), watermark(110)]
    found = [one.value for one in run(values, limits) if one.key]
    assert len(found) > 1
    assert max(map(len, found)) <= 500_000
    for value in found:
        Draft202012Validator(json_schema("statistics", SCHEMAS["statistics"])).validate(orjson.loads(value))
    names = [row["series"] for one in finals(run(values, limits)) for row in one["statistics"]]
    assert len(names) == len(set(names)) == 6_000
