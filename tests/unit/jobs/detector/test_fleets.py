"""Machines that come and go: what is said of them, and that nothing of them stays."""

import itertools
from functools import cache

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from infra.contract.json_schema import json_schema
from infra.contract.schemas import NOVELTIES
from jobs.detector.detector import EVICT_EVERY
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard, fold
from jobs.statistics.parts import in_parts
from tests.unit.jobs.detector.test_shard import FIRST, SIZE, control_event, log, metric, watermark

SETTINGS = DetectorSettings(gone_windows=60, state_ttl_windows=400, seen_before_windows=500)
SCHEMA = Draft202012Validator(json_schema("novelties", NOVELTIES))
STAYS = "vm-0"


def record(machine, window, statistics=None, **facts):
    end = (FIRST + window) * SIZE
    span = {"kind": "tumbling", "size_seconds": 10.0, "start_unix_nano": end - SIZE, "end_unix_nano": end}
    columns = statistics or [metric("cpu", 1.0 + window % 3), log("opened <*>", 2)]
    columns = {name: [row.get(name) for row in columns] for name in {**columns[0], **columns[-1]}}
    facts = {"known": True, "site": "s1", **facts}
    return orjson.dumps(
        {"id": f"{machine}/{window}", "machine": machine, "inventory": facts, "window": span, "statistics": columns}
    )


def stream(windows, there, **facts):
    """STAYS is in every window; `there` says in which ranges of windows each other machine is."""
    for window in range(windows):
        yield record(STAYS, window)
        for machine, ranges in there.items():
            if any(window in one for one in ranges):
                yield record(machine, window, **facts)
        yield watermark(window)


def said(novelties, machine=None):
    for one in novelties:
        SCHEMA.validate(one | {"inventory": {k: v for k, v in one["inventory"].items() if k != "workload"}})
    return [
        (one["time_unix_nano"] // SIZE - FIRST, one["phase"], one["verdict"])
        for one in novelties
        if machine in (None, one["machine"])
    ]


def run(records, chosen=SETTINGS):
    shard = Shard(chosen)
    return shard, shard.feed(list(records))


def test_a_silence_that_lasts_ends_once_as_gone_and_nothing_of_the_machine_is_kept():
    shard, novelties = run(stream(2 * EVICT_EVERY, {"vm-1": [range(50)]}))
    assert said(novelties) == [(52, "start", "silence"), (109, "end", "gone")]
    start, end = novelties
    assert end["id"] == start["id"]
    assert end["observed"] == 600
    assert end["text"] == "vm-1 (at s1) is gone: it has sent nothing for 600 s"
    detector = shard.detector
    assert (detector.machines.names, len(detector.machines), len(detector.model)) == ([STAYS], 1, 2)
    assert list(detector.silence_tracker.open_novelties()) == []
    assert detector.series.machine.tolist() == [0, 0]


def test_a_machine_that_was_silent_for_long_before_is_given_three_times_as_long():
    ranges = [range(50), range(90, 100)]
    _, novelties = run(stream(300, {"vm-1": ranges}))
    gap = 40
    assert said(novelties)[-1] == (99 + 3 * gap, "end", "gone")


def test_the_state_ttl_is_the_longest_that_anybody_waits():
    chosen = SETTINGS.model_copy(update={"state_ttl_windows": 100})
    _, novelties = run(stream(300, {"vm-1": [range(50), range(90, 100)]}), chosen)
    assert said(novelties)[-1] == (199, "end", "gone")


def test_one_that_comes_back_is_new_and_was_seen_before():
    _, novelties = run(stream(300, {"vm-1": [range(50), range(200, 300)], "vm-9": [range(200, 300)]}))
    new = [one for one in novelties if one["verdict"] == "new_entity" and one["phase"] == "start"]
    assert [(one["machine"], one.get("seen_before")) for one in new] == [("vm-1", True), ("vm-9", None)]
    assert new[0]["text"] == "vm-1 (at s1) is back: it was seen before, and then it was gone"


def test_after_a_record_from_long_before_the_fleet_is_no_news():
    _, novelties = run([record("vm-0", -100_000), *stream(50, {"vm-1": [range(50)]})])
    assert said(novelties) == []


def test_a_fleet_that_was_gone_is_seen_again():
    back = (one for window in range(300, 320) for one in (record(STAYS, window), watermark(window)))
    _, novelties = run([*stream(50, {}), *back])
    assert said(novelties)[-2:] == [(300, "start", "new_entity"), (306, "end", "new_entity")]


def test_a_name_is_forgotten_after_its_time():
    _, novelties = run(stream(1700, {"vm-1": [range(50), range(1650, 1700)]}))
    new = [one for one in novelties if one["verdict"] == "new_entity" and one["phase"] == "start"]
    assert [one.get("seen_before") for one in new] == [None]


def test_a_machine_that_the_inventory_retires_is_gone_at_once():
    valid_to = (FIRST + 60) * SIZE
    records = list(stream(100, {"vm-1": [range(60)]}, valid_to_unix_nano=valid_to))
    _, novelties = run(records)
    assert said(novelties) == [(60, "end", "gone")]
    (gone,) = novelties
    assert gone["statistic"] == "retired"
    assert gone["text"] == "vm-1 (at s1) is gone: the inventory says that it is retired"


def test_a_silent_machine_that_an_operator_retires_is_gone_at_once():
    records = list(stream(100, {"vm-1": [range(50)]}))
    retire = {"action": "retire", "machine": "vm-1", "valid_to_unix_nano": (FIRST + 70) * SIZE}
    at = records.index(watermark(70))
    _, novelties = run([*records[:at], control_event(70, retire), *records[at:]])
    assert said(novelties) == [(52, "start", "silence"), (70, "end", "gone")]


def test_a_machine_that_goes_on_all_the_same_is_not_gone():
    valid_to = (FIRST + 60) * SIZE
    records = [record("vm-1", w, **({"valid_to_unix_nano": valid_to} if w < 60 else {})) for w in range(100)]
    logged = [one for window, mine in enumerate(records) for one in (record(STAYS, window), mine, watermark(window))]
    shard, novelties = run(logged)
    assert novelties == []
    assert shard.detector.machines.retired_at == {}


def test_the_last_machine_of_a_shard_is_gone_too():
    records = [record("vm-1", window) for window in range(50)]
    _, novelties = run([*records, watermark(60), watermark(500)])
    assert said(novelties) == [(52, "start", "silence"), (109, "end", "gone")]


def test_thousands_that_vanished_cost_nothing_later():
    there = {f"pod-{number}": [range(20)] for number in range(300)}
    shard, novelties = run(stream(EVICT_EVERY, there))
    assert sum(one["verdict"] == "gone" for one in novelties) == 300
    alone, _ = run(stream(EVICT_EVERY, {}))
    state, least = (sum(map(len, one.dump().values())) for one in (shard, alone))
    assert state < least + 300 * 8 + 100


def test_a_replaced_member_of_a_workload_is_no_novelty():
    pods = {f"web-{number}": [range(20 * number, 20 * number + 30)] for number in range(20)}
    shard, novelties = run(stream(400, pods, workload="Deployment/shop/web"))
    assert novelties == []
    assert shard.detector.machines.names == [STAYS, "Deployment/shop/web"]


def test_a_workload_without_members_is_silent_and_new_ones_are_new():
    pods = {"web-1": [range(30)], "web-2": [range(40, 45)]}
    _, novelties = run(stream(60, pods, workload="Deployment/shop/web"))
    assert said(novelties, "Deployment/shop/web") == [
        (32, "start", "silence"),
        (40, "end", "silence"),
        (47, "start", "silence"),
    ]
    late = [
        *stream(30, {}),
        *itertools.islice(stream(40, {"db-1": [range(30, 40)]}, workload="StatefulSet/s/db"), 60, None),
    ]
    _, novelties = run(late)
    assert said(novelties) == [(30, "start", "new_entity"), (36, "end", "new_entity")]


def test_the_level_of_a_workload_is_the_mean_of_its_members_and_the_sum_of_their_lines():
    logged = []
    for window in range(60):
        level = 50.0 if window >= 50 else 1.0 + 0.1 * (window % 4)
        pods = [[metric("cpu", level + pod), log("opened <*>", 3)] for pod in (-0.5, 0.5)]
        logged += [record(f"web-{n}", window, pod, workload="Deployment/s/web") for n, pod in enumerate(pods)]
        logged += [record(STAYS, window), watermark(window)]
    shard, novelties = run(logged)
    assert said(novelties)[0] == (50, "start", "anomaly")
    assert (novelties[0]["machine"], novelties[0]["observed"]) == ("Deployment/s/web", 50.0)
    row = shard.detector.series.row(1, "log", "opened <*>")
    assert row is not None
    assert shard.detector.model.figures()["last"][row] == pytest.approx(2 * (6 + 0.375) ** 0.5)  # Anscombe's scale


def test_a_machine_that_becomes_a_member_is_judged_no_longer():
    records = [*stream(30, {"web-1": [range(30)]})]
    records += itertools.islice(stream(100, {"web-1": [range(100)]}, workload="Deployment/s/web"), 90, None)
    shard, novelties = run(records)
    assert [one for one in novelties if one["machine"] == "web-1"] == []
    assert shard.detector.machines.number("web-1") is None


@cache
def eventful():
    there = {
        "vm-1": [range(50), range(200, 500)],
        "vm-2": [range(20, 400)],
        "web-1": [range(30, 60)],
        **{f"pod-{n}": [range(n, n + 20)] for n in range(70)},
    }
    return tuple(stream(500, there))


@cache
def whole():
    return fold(None, eventful(), SETTINGS)


@settings(max_examples=4, deadline=None)
@given(st.data())
def test_any_cut_of_the_log_gives_the_same_bytes(data):
    records, (state, novelties) = eventful(), whole()
    cuts = data.draw(st.lists(st.integers(0, len(records)), min_size=1, max_size=4).map(sorted))
    parts, found = None, []
    for first, last in itertools.pairwise([0, *cuts, len(records)]):
        parts, more = fold(parts, records[first:last], SETTINGS)
        found += more
    assert orjson.dumps(found) == orjson.dumps(novelties)
    assert parts == state
    assert {"gone", "silence", "new_entity"} <= {one["verdict"] for one in novelties}


def test_the_parts_of_a_window_are_one_window():
    whole, cut = [], []
    for window in range(30):
        series = [metric(f"m{n}", float(n + window % 3)) for n in range(40)]
        one = record(STAYS, window, series)
        whole += [one, watermark(window)]
        cut += [*in_parts(one, 800), watermark(window)]
    assert len(cut) >= 2 * len(whole)
    assert fold(None, cut, SETTINGS) == fold(None, whole, SETTINGS)


def test_a_series_whose_novelty_is_open_is_not_kept_for_ever():
    def values(window):
        disk = [metric("disk", 90.0 if window == 49 else 10.0 + window % 3)] if window < 50 else []
        return [metric("cpu", 5.0 + window % 3), *disk]

    windows = 2 * SETTINGS.state_ttl_windows + 2 * EVICT_EVERY
    records = [one for w in range(windows) for one in (record(STAYS, w, values(w)), watermark(w))]
    shard, novelties = run(records)
    assert said(novelties)[0] == (49, "start", "anomaly")
    assert novelties[-1]["phase"] == "end"
    assert novelties[-1]["text"].endswith("its series has not come for longer than its state is kept")
    assert len(shard.detector.model) == 1


def test_of_a_machine_with_too_many_series_old_ones_are_evicted_early():
    chosen = SETTINGS.model_copy(update={"series_per_machine": 20, "state_ttl_windows": 10**6})
    windows = 3 * EVICT_EVERY
    each = [[metric(f"m{window // 20}-{n}", 1.0) for n in range(5)] for window in range(windows)]
    shard, _ = run([one for w in range(windows) for one in (record(STAYS, w, each[w]), watermark(w))], chosen)
    assert len(shard.detector.model) <= 5 * 2 * EVICT_EVERY // 20 + 5
