"""A shard of the detector that is divided into two in the middle of everything: each half goes on with its machines."""

from functools import cache, partial
from typing import Any

import numpy as np
import orjson
import pytest

from infra.contract.sharding import shard_key
from jobs.detector.control import reset, retire, suppress
from jobs.detector.job import DetectorShard
from jobs.detector.rules import Rule, is_pattern
from jobs.detector.settings import DetectorSettings
from jobs.runtime.packed_state import unpack
from jobs.runtime.shard_state import Input
from tests.unit.jobs.detector.test_shard import FIRST, SIZE, control_event, inserted, log, metric, record, watermark
from tests.unit.jobs.folds import HALVES, half_of, halves

SETTINGS = DetectorSettings(gone_windows=12)
OPENER = partial(DetectorShard, SETTINGS)
OF_HALF = partial(DetectorShard, SETTINGS.model_copy(update={"shards": 2}))
WINDOWS, SPLIT = 125, 83  # windows; the one in the middle of which the shard is divided

ROLES = ("usual", "surprised", "silent", "back", "new", "strange", "retired", "excused")
_CANDIDATES = [f"vm-{number:02}" for number in range(60)]
_OF_HALF = [[name for name in _CANDIDATES if half_of(name) == half] for half in HALVES]
MACHINES = {(role, half): _OF_HALF[half][at] for at, role in enumerate(ROLES) for half in HALVES}  # one of each half
WORKLOADS = {"web-1": "deployment/shop/web", "web-2": "deployment/shop/web", "db-1": "statefulset/shop/db"}
NAMES = (*MACHINES.values(), *sorted({*WORKLOADS.values()}))  # of what is judged
AWAY = {"silent": range(79, 87), "back": range(10, 90), "new": range(81), "retired": range(95, WINDOWS)}
# Metrics of a role that are high, and in which windows.
HIGH = {
    "usual": {1: range(110, 113)},
    "surprised": {0: range(80, 104), 1: range(110, 113), 2: range(115, 118)},
    "excused": {3: (*range(60, 63), *range(100, 103)), 0: range(110, 113)},
    "member": {0: range(100, 104)},
}


def values(role: str, number: int, window: int) -> list[dict[str, object]]:
    """Twenty metrics and a template: all of a strange machine's metrics are a little off in windows 80 to 87."""
    rng = np.random.default_rng([window, number])
    noise = rng.normal(size=20)
    if role == "strange" and 80 <= window < 88:
        noise = np.full(20, 4.6 + 0.1 * (window % 3))
    high = {at for at, windows in HIGH.get(role, {}).items() if window in windows}
    means = [10.0 * (at + 1) + (60.0 if at in high else 0.0) + one for at, one in enumerate(noise.tolist())]
    return [*(metric(f"metric-{at}", mean) for at, mean in enumerate(means)), log("opened <*>", 5 + number % 3)]


def records_of(window: int) -> list[bytes]:
    found = [
        record(name, window, values(role, number, window))
        for number, ((role, _), name) in enumerate(MACHINES.items())
        if window not in AWAY.get(role, ())
    ]
    for number, (name, workload) in enumerate(WORKLOADS.items()):
        facts = {"inventory": {"site": "s1", "workload": workload}}
        found.append(orjson.dumps(orjson.loads(record(name, window, values("member", 90 + number, window))) | facts))
    return found


def of_both(role: str) -> list[str]:
    return [MACHINES[role, half] for half in HALVES]


@cache
def story() -> tuple[bytes, ...]:
    records = [raw for window in range(WINDOWS) for raw in (*records_of(window), watermark(window))]
    controls = [
        control_event(15, reset("metric-9", "vm-*")),
        control_event(40, suppress(Rule(machine="vm-*", series="metric-2"))),
        *(control_event(40, suppress(Rule(machine=name, series="metric-1"))) for name in of_both("surprised")),
        *(control_event(70, retire(name, (FIRST + 97) * SIZE)) for name in of_both("retired")),
        *(control_event(64, called_normal(name)) for name in of_both("excused")),
        # These wait at the split.
        control_event(SPLIT, reset("metric-8", "vm-*")),
        *(control_event(SPLIT, suppress(Rule(machine=name, series="metric-8"))) for name in of_both("usual")),
    ]
    return tuple(inserted(records, *controls))


def called_normal(machine: str) -> dict[str, Any]:
    about = {"verdict": "anomaly", "kind": "metric", "series": "metric-3", "observed": 110.0, "expected": 40.0}
    return {"action": "feedback", "machine": machine, "novelty": "x", **about}


def split_at() -> int:
    """Before the watermark that closes the window, so that records and control events wait."""
    return story().index(watermark(SPLIT))


def fed(shard: DetectorShard, records: list[bytes]) -> list[dict[str, Any]]:
    outputs = shard.feed(Input("statistics", 3, range(len(records)), records))
    assert not [one for one in outputs if one.topic]
    return [orjson.loads(one.value) for one in outputs if one.key]


def is_of(raw: bytes, half: int) -> bool:
    """Whether a record is in the partition of one half; watermarks and control events for a pattern are in both."""
    one = orjson.loads(raw)
    if "machine" not in one or is_pattern(one["machine"]):
        return True
    return half_of(shard_key(one["machine"], one.get("inventory"))) == half


@cache
def divided() -> tuple[list[dict[str, Any]], list[dict[str, Any]], list[list[dict[str, Any]]], list[dict[str, bytes]]]:
    """The novelties until the split, after it of the undivided shard and of each half, and the states of the halves."""
    records, at, undivided = list(story()), split_at(), OPENER()
    before = fed(undivided, records[:at])
    states = halves(OF_HALF, undivided.dump())
    of_halves = [
        fed(OF_HALF(state), [raw for raw in records[at:] if is_of(raw, half)])
        for half, state in zip(HALVES, states, strict=True)
    ]
    return before, fed(undivided, records[at:]), of_halves, states


def shown(novelties: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Of each the window, phase, verdict and series."""
    names = ("phase", "verdict", "series")
    return [(one["time_unix_nano"] // SIZE - FIRST, *(one.get(name) for name in names)) for one in novelties]


def of_machine(novelties: list[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    return [one for one in novelties if one["machine"] == name]


def but_for_the_others(novelty: dict[str, Any]) -> dict[str, Any]:
    """A novelty without what says how many other machines its shard has: so also how rare a new one is."""
    left = {"peers"} | ({"score", "probability"} if novelty["verdict"] == "new_entity" else set())
    return {name: value for name, value in novelty.items() if name not in left}


def test_at_the_split_everything_is_open_in_both_halves() -> None:
    before = divided()[0]
    for half in HALVES:
        ends = {one["id"] for one in before if one["phase"] == "end"}
        opened = {(one["machine"], one["verdict"]) for one in before if one["id"] not in ends}
        expected = {("surprised", "anomaly"), ("silent", "silence"), ("new", "new_entity"), ("strange", "anomaly")}
        assert {(MACHINES[role, half], verdict) for role, verdict in expected} <= opened


@pytest.mark.parametrize("name", NAMES)
def test_a_machine_has_the_novelties_that_it_would_have_had(name: str) -> None:
    _, whole, of_halves, _ = divided()
    own, others = of_halves[half_of(name)], of_halves[1 - half_of(name)]
    found, expected = of_machine(own, name), of_machine(whole, name)
    assert shown(found) == shown(expected)
    assert list(map(but_for_the_others, found)) == list(map(but_for_the_others, expected))
    assert not of_machine(others, name)


# After the split. Of a surprised machine metric-1 is suppressed, metric-2 of all; of an excused one metric-3 is normal.
LATER: dict[str, list[tuple[Any, ...]]] = {
    "usual": [(110, "start", "anomaly", "metric-1"), (114, "end", "anomaly", "metric-1")],
    "surprised": [(88, "update", "state_change", "metric-0"), (104, "end", "anomaly", "metric-0")],
    "silent": [(87, "end", "silence", None)],
    "back": [(90, "start", "new_entity", None), (96, "end", "new_entity", None)],
    "new": [(87, "end", "new_entity", None)],
    "strange": [(88, "update", "state_change", None)],
    "retired": [(97, "start", "silence", None), (97, "end", "gone", None)],
    "excused": [(110, "start", "anomaly", "metric-0"), (114, "end", "anomaly", "metric-0")],
}


@pytest.mark.parametrize(("role", "half"), MACHINES)
def test_what_was_open_or_said_before_the_split_holds_after_it(role: str, half: int) -> None:
    found = of_machine(divided()[2][half], MACHINES[role, half])
    assert shown(found) == LATER[role]
    assert [one.get("seen_before") for one in found] == [True if role == "back" else None] * len(found)


def test_a_half_holds_nothing_of_the_others() -> None:
    for half, state in zip(HALVES, divided()[3], strict=True):
        held = b"".join(state.values())
        for name in (*NAMES, *WORKLOADS):
            assert (name.encode() in held) == (half_of(WORKLOADS.get(name, name)) == half), name


def test_what_is_for_all_machines_stays_in_each_half() -> None:
    undivided = OPENER()
    fed(undivided, list(story()[: split_at()]))
    whole = unpack(undivided.dump())[0]
    for half, state in zip(HALVES, divided()[3], strict=True):
        header = unpack(state)[0]
        for name in ("window", "closed", "first_window", "names_begun", "budget"):
            assert header[name] == whole[name]
        rules = sorted(rule["machine"] for _, rule in header["overrides"]["rules"])
        assert rules == sorted(["vm-*", MACHINES["surprised", half]])
        pending = map(orjson.loads, OF_HALF(state).shard.pending)
        waiting = [one["control"]["machine"] for one in pending if "control" in one]
        assert sorted(waiting) == sorted(["vm-*", MACHINES["usual", half]])
