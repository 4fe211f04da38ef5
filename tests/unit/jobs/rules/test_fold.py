import random
from itertools import groupby

import orjson
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from infra.contract.sharding import shard_key
from jobs.rules.rule import SECOND
from tests.unit.jobs.folds import HALVES, cuts_of, data, fed, half_of, halves
from tests.unit.jobs.rules.logs import (
    absence,
    alerts,
    change,
    line,
    log_of,
    opener,
    point,
    record,
    sequence,
    watermark,
)

TTL = 400 * SECOND
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # of a random story there is no smaller one
RULES = (
    change(by=5, within="40s", cooldown="30s"),
    change(id="cold", by=5, within="20s", cooldown="1s", direction="fall", match={"role": "upf"}),
    sequence(cooldown="5s"),
    sequence(
        id="mixed", first={"metric": "temperature", "above": 8}, then={"log": "A|B"}, match={"machine": "vm-[12]"}
    ),
    absence(**{"for": "30s"}, cooldown="1m"),
    absence(id="no-b", of={"log": "^B"}, **{"for": "1m"}, cooldown="1s", match={"role": "upf"}),
)


def story(rng):
    """Records of three machines, and watermarks that are true of them."""
    values, passed = [], 0
    while passed < 1500:
        for _ in range(rng.randint(0, 6)):
            times = sorted(passed + rng.choice([0, 1, 5, 30, 70]) for _ in range(rng.randint(1, 4)))
            if rng.random() < 0.5:
                sensors = [f"temperature{{sensor={rng.choice('ab')}}}" for _ in times]
                events = [point(t, rng.randint(0, 10), s) for t, s in zip(times, sensors, strict=True)]
            else:
                events = [line(time, rng.choice(["A", "B", "x"]), rng.choice([9, 17])) for time in times]
            facts = {"known": True, "role": rng.choice(["upf", "upf", "amf"])}
            values.append(record(*events, machine=f"vm-{rng.randint(1, 3)}", inventory=facts))
        passed += rng.choice([1, 5, 20, 100, 450])
        values.append(watermark(passed))
    return values


def shuffled(rng, values):
    """Other orders in which the same records could have come between two watermarks."""
    parts = [list(part) for _, part in groupby(values, key=lambda value: value.startswith(b'{"watermark'))]
    return [value for part in parts for value in rng.sample(part, len(part))]


@settings(max_examples=60, phases=NO_SHRINKING)
@given(st.integers(0, 2**32).map(random.Random), st.data())
def test_neither_cuts_nor_workers_nor_the_order_between_watermarks_show(rng, chosen):
    values = story(rng)
    fold = opener(*RULES, ttl=TTL)
    state, outputs = fed(fold, log_of(values))
    cut_state, cut_outputs = fed(fold, log_of(values), chosen.draw(cuts_of(len(values))))
    assert (cut_state, data(cut_outputs)) == (state, data(outputs))
    shuffled_state, shuffled_outputs = fed(fold, log_of(shuffled(rng, values)), chosen.draw(cuts_of(len(values))))
    assert (shuffled_state, data(shuffled_outputs)) == (state, data(outputs))


@settings(max_examples=30, phases=NO_SHRINKING)
@given(st.integers(0, 2**32).map(random.Random))
def test_watermarks_between_say_nothing_but_that_time_passes(rng):
    """With each watermark but the last left out, the same is found."""
    values = story(rng)
    events = [value for value in values if not value.startswith(b'{"watermark')]
    assert alerts(RULES, *events, values[-1], ttl=TTL) == alerts(RULES, *values, ttl=TTL)


def test_each_pattern_is_found_in_such_stories():
    stories = (story(random.Random(seed)) for seed in range(5))
    found = {alert["rule"] for values in stories for alert in alerts(RULES, *values, ttl=TTL)}
    assert found == {rule.id for rule in RULES}


def test_alerts_keep_the_promise_of_the_watermarks():
    passed = 0
    _, outputs = fed(
        opener(*RULES, ttl=TTL), log_of(values := story(random.Random(3))), dict.fromkeys(range(len(values)), False)
    )
    for output in outputs:
        assert output.time_unix_nano >= passed
        passed = output.time_unix_nano if output.key is None else passed


def test_the_state_of_machines_without_events_is_evicted():
    state = opener(*RULES, ttl=TTL)(None)
    state.feed(log_of([record(point(0, 1)), record(line(0, "A"), machine="vm-2"), watermark(401)]))
    assert state.fold.machines == {} and state.fold.waiting == {}


def test_a_rule_that_is_changed_starts_anew_and_the_others_go_on():
    first = opener(change(), sequence())(None)
    first.feed(
        log_of([record(point(0, 1)), record(line(0, "A")), watermark(1), record(point(2, 2)), record(line(3, "x"))])
    )
    later = opener(change(by=19), sequence())(first.dump())
    found = later.feed(log_of([record(point(5, 30)), record(line(6, "B")), watermark(10)]))
    assert [output.key for output in data(found)] == ["vm-1"]
    assert b'"rule":"then"' in found[0].value


WORKLOADS = {"vm-2": "statefulset/shop/db"}  # whose half isn't the one of the member's own name


def with_workloads(values):
    """The same story; one of its machines is a member of a workload."""
    for value in map(orjson.loads, values):
        if workload := WORKLOADS.get(value.get("machine")):
            value["inventory"]["workload"] = workload
        yield orjson.dumps(value)


def of_half(values, half):
    """The records of one half, and all watermarks."""
    for value in values:
        found = orjson.loads(value)
        if "machine" not in found or half_of(shard_key(found["machine"], found["inventory"])) == half:
            yield value


@settings(max_examples=40, phases=NO_SHRINKING)
@given(st.integers(0, 2**32).map(random.Random), st.data())
def test_each_half_of_a_divided_shard_goes_on_as_though_it_had_never_been_more(rng, chosen):
    values = list(with_workloads(story(rng)))
    cut, fold = chosen.draw(st.integers(0, len(values))), opener(*RULES, ttl=TTL)
    before, after = values[:cut], values[cut:]
    undivided = fold(fed(fold, log_of(before))[0])
    states, found = halves(fold, undivided.dump()), []
    for half, state in zip(HALVES, states, strict=True):
        assert state == fed(fold, log_of(list(of_half(before, half))))[0]
        found += data(fold(state).feed(log_of(list(of_half(after, half)))))
    assert sorted(one.value for one in found) == sorted(one.value for one in data(undivided.feed(log_of(after))))


def test_a_half_does_not_hold_the_names_of_the_others():
    values = list(with_workloads(story(random.Random(3))))
    values += with_workloads([record(line(1600, "A"), machine=f"vm-{n}") for n in (1, 2, 3)])
    first, second = (b"".join(one.values()) for one in halves(opener(*RULES), fed(opener(*RULES), log_of(values))[0]))
    names = (b"vm-1", b"vm-2", b"vm-3")
    assert [name in first for name in names] == [True, False, False]
    assert [name in second for name in names] == [False, True, True]
