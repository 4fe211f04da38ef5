"""What a shard keeps, when it is divided into two: each half goes on as though it had never been more."""

import random
from functools import partial

import orjson
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from infra.contract.dead_letters import TOPIC as REJECTED
from infra.contract.sharding import shard_key
from jobs.runtime.shard_state import Input
from jobs.statistics.limits import Limits
from jobs.statistics.shard import Shard
from jobs.statistics.state import State
from tests.unit.jobs.folds import HALVES, data, fed, half_of, halves
from tests.unit.jobs.statistics.test_shard import (
    INVENTORY,
    control,
    counter,
    histogram,
    line,
    log_of,
    metric,
    record,
    watermark,
    windows,
)

NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # of a random story there is no smaller one
EVERY_KIND = windows(
    {"kind": "tumbling", "size": "10s"},
    {"kind": "tumbling", "size": "30s", "early": "10s"},
    {"kind": "sliding", "size": "60s", "slide": "30s"},
    {"kind": "session", "gap": "15s", "least": 2, "early": "10s"},
    {"kind": "count", "values": 3, "names": ["cpu*"], "timeout": "40s", "early": {"values": 2}},
    {"kind": "sliding_count", "values": 4, "slide": 2, "names": ["cpu*"]},
    state_ttl="60s",
)
OPENER = partial(Shard, EVERY_KIND)
WEB, DB = "deployment/shop/web", "statefulset/shop/db-0"
WORKLOADS = {"web-1": WEB, "web-2": WEB, "db-1": DB, "db-2": DB}
MACHINES = ("vm-1", "vm-3", "vm-4", "vm-6", *WORKLOADS)


def facts_of(machine):
    return {**INVENTORY, **({"workload": WORKLOADS[machine]} if machine in WORKLOADS else {})}


def events_of(rng, machine, now):
    times = sorted(now + rng.randint(0, 400) / 10 for _ in range(rng.randint(1, 4)))
    if rng.random() < 0.4:
        templates = ("up", "GET status: <*>", "down <*>", "a", "b", "c")
        body = f"{machine} says {rng.randint(1, 3)}"
        return "log", [line(time, rng.choice(templates), rng.randint(0, 24)) | {"body": body} for time in times]
    makers = (
        lambda time: metric(time, rng.random(), f"cpu{{core={rng.randint(0, 2)}}}"),
        lambda time: counter(time, rng.randint(0, 50), f"net{{dir={rng.choice('io')}}}"),
        lambda time: histogram(time, [rng.randint(0, 9) for _ in range(3)], rng.random()),
        lambda time: histogram(time, [1, 2, 3], 4.0, temporality="delta") | {"series": "delta"},
    )
    return "metric", [rng.choice(makers)(time) for time in times]


def story(rng):
    """Records of machines and members of workloads, control events for all, and watermarks, which make some late."""
    values, now = [], 100
    for step in [rng.randint(1, 25) for _ in range(rng.randint(4, 9))]:
        for _ in range(rng.randint(0, 9)):
            machine = rng.choice(MACHINES)
            kind, events = events_of(rng, machine, now - rng.choice([0, 0, 0, 20]))
            values.append(record(*events, machine=machine, kind=kind, inventory=facts_of(machine)))
        now += step
        values += [control(now), watermark(now)]
    return values


def is_of(value, half):
    """Whether a record is in the partition of one half: watermarks and control events for many are in both."""
    found = orjson.loads(value)
    if "events" not in found or found["kind"] == "control":
        return True
    return half_of(shard_key(found["machine"], found["inventory"])) == half


def of_half(log, half):
    """The records of one half under the offsets that they have in the undivided log."""
    chosen = [at for at, value in enumerate(log.values) if is_of(value, half)]
    return Input(log.topic, log.shard, [log.offsets[at] for at in chosen], [log.values[at] for at in chosen])


def written(outputs):
    """What is written but for watermarks and control events, which both halves pass on; in one order."""
    found = [one for one in data(outputs) if b'"control"' not in one.value]
    return sorted(found, key=lambda one: (one.time_unix_nano, one.topic or "", one.key, one.value))


def test_the_machines_of_the_stories_are_of_both_halves():
    assert [half_of(name) for name in ("vm-1", "vm-3", WEB, DB)] == [0, 1, 0, 1]
    assert half_of("web-1") != half_of(WEB)  # it goes with its workload, not where its own name says


def remembered(parts):
    """A state, whatever numbers its facts have; without panes, which begin with the first that came of any machine."""
    state, by_number = State(EVERY_KIND, parts), ("head", "value/facts", "value/latest", "value/inventories")
    rest = {name: part for name, part in parts.items() if "/panes" not in name and name not in by_number}
    return rest, state.facts, state.latest


@settings(max_examples=40, deadline=None, phases=NO_SHRINKING)
@given(st.integers(0, 2**32).map(random.Random), st.data())
def test_each_half_remembers_what_its_own_records_alone_would_have_left(rng, chosen):
    log = log_of(story(rng))
    before = log.part(0, chosen.draw(st.integers(0, len(log.values))))
    for half, state in zip(HALVES, halves(OPENER, fed(OPENER, before)[0]), strict=True):
        assert remembered(state) == remembered(fed(OPENER, of_half(before, half))[0])


@settings(max_examples=25, deadline=None, phases=NO_SHRINKING)
@given(st.integers(0, 2**32).map(random.Random), st.data())
def test_the_halves_write_together_what_the_undivided_shard_would_have_written(rng, chosen):
    log = log_of(story(rng))
    cut = chosen.draw(st.integers(0, len(log.values)))
    undivided = OPENER(fed(OPENER, log.part(0, cut))[0])
    after, parts = log.part(cut, len(log.values)), undivided.dump()
    found = []
    for half, state in zip(HALVES, halves(OPENER, parts), strict=True):
        found += OPENER(state).feed(of_half(after, half))
    assert written(found) == written(undivided.feed(after))


def test_the_stories_have_of_everything_that_is_held():
    found = set()
    for seed in range(6):
        values = story(random.Random(seed))
        kept = State(EVERY_KIND, fed(OPENER, log_of(values[: len(values) * 3 // 4]))[0])
        names = ("points", "waiting", "totals", "facts", "latest", "panes")
        found |= {name for name in names if getattr(kept, name)}
        found |= {"lines" for _ in kept.lines.series()}
        found |= {"parameters"} if len(kept.parameters.values) else set()
        found |= {"examples"} if kept.examples.newest and kept.examples.waiting else set()
        found |= {type(one).__name__ for one in kept.open if getattr(one, "rows", ())}
    assert found == {
        *("points", "waiting", "totals", "facts", "latest", "panes", "lines", "parameters", "examples"),
        *("SessionState", "CountState", "SlidingCountState"),
    }


def test_a_half_does_not_hold_the_names_of_the_others():
    values = story(random.Random(7))
    values += [record(metric(900, 1.0), machine=machine, inventory=facts_of(machine)) for machine in MACHINES]
    for half, state in zip(HALVES, halves(OPENER, fed(OPENER, log_of(values))[0]), strict=True):
        held = b"".join(state.values())
        for machine in MACHINES:
            is_own = half_of(WORKLOADS.get(machine, machine)) == half
            assert (machine.encode() in held) == is_own, machine


def test_the_newest_facts_of_a_machine_decide_where_it_goes():
    """Its workload became known in a pane that is still open: there its next records will come."""
    alone, member = {"known": True}, {"known": True, "workload": WEB}
    values = [
        record(metric(101, 1.0), machine="web-1", inventory=alone),
        watermark(110),
        record(metric(112, 2.0), machine="web-1", inventory=member),
    ]
    found = [State(EVERY_KIND, one).catalogue.machines for one in halves(OPENER, fed(OPENER, log_of(values))[0])]
    assert found == [["web-1"], []]
    before = [State(EVERY_KIND, one).catalogue.machines for one in halves(OPENER, fed(OPENER, log_of(values[:2]))[0])]
    assert before == [[], ["web-1"]]


def test_one_half_accounts_for_what_was_too_much():
    """Series with their machine; machines, of which there is one account, with the first of them."""
    opener = partial(Shard, EVERY_KIND, limits=Limits(machines=2, series=1))
    events = [metric(101, 1.0), metric(102, 1.0, "cpu{core=1}")]
    values = [record(*events, machine=machine) for machine in ("vm-1", "vm-3", "vm-4", "vm-6")]
    found = []
    for state in halves(opener, fed(opener, log_of(values))[0]):
        outputs = opener(state).feed(Input("events", 3, [9], [watermark(110)]))
        letters = [orjson.loads(one.value) for one in outputs if one.topic == REJECTED]
        found.append([(one.get("machine"), one["events"]) for one in letters])
    assert found == [[("vm-1", 1)], [("vm-3", 1), (None, 4)]]
