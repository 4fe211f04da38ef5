import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infra.errors import UserError
from ops.simulator.faults import SECOND
from ops.simulator.logs import BURST_RATE
from ops.simulator.simulation import WRONG_CLOCK, Inventory, Lines, Malformed, Scrape, Settings, Simulation

START = 1_795_000_000 * SECOND


def by_identity(records):
    """Records by machine, kind and own time; when they arrive is not looked at."""
    return {
        (r.key, type(r.content).__name__, getattr(r.content, "time_unix_nano", None) or r.value): r.value
        for r in records
    }


@given(st.integers(0, 2**32 - 1), st.integers(4, 40), st.sampled_from(["otlp", "lines"]))
@settings(max_examples=8, deadline=None)
def test_the_same_settings_give_the_same_bytes(seed, machines, format):
    given_settings = Settings(START, 15 * SECOND, machines=machines, seed=seed, format=format)
    one, other = ([record[:4] for record in Simulation(given_settings).records()] for _ in range(2))
    assert one == other
    assert one


def test_records_arrive_in_order_and_not_before_their_events(simulate):
    records = list(simulate(seconds=120).records())
    arrivals = [record.timestamp_ms for record in records]
    assert arrivals == sorted(arrivals)
    assert all(
        r.timestamp_ms * 1_000_000 + 1_000_000 > r.content.time_unix_nano
        for r in records
        if isinstance(r.content, Scrape)
    )


def test_some_records_of_a_machine_overtake_others_and_none_is_late(simulate):
    scrapes = [r for r in simulate(seconds=300).records() if isinstance(r.content, Scrape)]
    times = [r.content.time_unix_nano for r in scrapes if r.key == b"vm-01"]
    assert times != sorted(times)
    assert max(r.timestamp_ms * 1_000_000 - r.content.time_unix_nano for r in scrapes) < 20 * SECOND


def test_a_span_of_records_is_that_part_of_all(simulate):
    simulation = simulate(seconds=60)
    middle = list(simulation.records(START + 20 * SECOND, START + 40 * SECOND))
    every = [r for r in simulation.records() if START + 20 * SECOND <= r.timestamp_ms * 1_000_000 < START + 40 * SECOND]
    assert [r[:4] for r in middle] == [r[:4] for r in every]
    assert middle


def test_each_machine_is_in_the_inventory_before_it_speaks(simulate):
    seen = set()
    for record in simulate("new_vm:vm-99@+20s").records():
        if isinstance(record.content, Inventory):
            assert record.topic == "inventory"
            fact = json.loads(record.value)
            assert record.key.decode() == f"{fact['machine']}@{fact['valid_from_unix_nano']}"
            seen.add(fact["machine"].encode())
        else:
            assert record.key in seen
    assert b"vm-99" in seen


def test_every_machine_is_scraped_once_in_each_interval(simulate):
    simulation = simulate(seconds=30)
    scrapes = [
        (r.key, (r.content.time_unix_nano - START) // (5 * SECOND))
        for r in simulation.records()
        if isinstance(r.content, Scrape)
    ]
    assert sorted(scrapes) == sorted((m.name.encode(), step) for m in simulation.machines for step in range(6))


@pytest.mark.parametrize("kind", ["cpu_hog", "memory_leak", "state_change"])
def test_a_fault_of_the_metrics_changes_only_its_machine_series_and_time(simulate, kind):
    spec = f"{kind}:vm-07@+20s/20s"
    plain, struck = (by_identity(simulate(*specs).records()) for specs in ([], [spec]))
    simulation = simulate(spec)
    facts = simulation.fault_facts(simulation.settings.faults[0])
    changed = {where for where in plain if plain[where] != struck[where]}
    assert plain.keys() == struck.keys()
    assert changed
    for machine, name, time in changed:
        assert (machine, name) == (b"vm-07", "Scrape")
        assert facts["start_unix_nano"] <= time < facts["end_unix_nano"]
        assert series_that_differ(plain[machine, name, time], struck[machine, name, time]) <= set(facts["series"])


def series_that_differ(one, other):
    metrics = zip(
        *(json.loads(v)["resourceMetrics"][0]["scopeMetrics"][0]["metrics"] for v in (one, other)), strict=True
    )
    return {
        f"{a['name']}{{{','.join(x['key'] + '=' + x['value']['stringValue'] for x in p['attributes'])}}}"
        if p.get("attributes")
        else a["name"]
        for a, b in metrics
        for p, q in zip(
            a.get("gauge", a.get("sum"))["dataPoints"], b.get("gauge", b.get("sum"))["dataPoints"], strict=True
        )
        if p != q
    }


def test_a_hog_on_a_hypervisor_steals_from_its_guests(simulate):
    plain, struck = (by_identity(simulate(*specs).records()) for specs in ([], ["cpu_hog:hv-01@+20s/20s"]))
    simulation = simulate()
    guests = {m.name.encode() for m in simulation.machines if m.hypervisor == "hv-01"}
    changed = {where for where in plain if plain[where] != struck[where]}
    assert {machine for machine, *_ in changed} == guests | {b"hv-01"}


def test_a_silent_machine_says_nothing_and_the_others_all(simulate):
    plain, struck = (list(simulate(*specs).records()) for specs in ([], ["silence:vm-07@+20s/20s"]))
    missing = [r for r in plain if r[:3] not in {s[:3] for s in struck}]
    assert {r.key for r in missing} == {b"vm-07"}
    times = [r.content.time_unix_nano for r in missing if isinstance(r.content, Scrape)]
    assert len(times) == 4
    assert START + 20 * SECOND <= min(times) <= max(times) < START + 40 * SECOND
    assert [r[:3] for r in plain if r not in missing and r.key != b"vm-07"] == [
        s[:3] for s in struck if s.key != b"vm-07"
    ]


def test_a_new_machine_changes_no_other_and_speaks_from_its_start(simulate):
    plain, struck = (list(simulate(*specs).records()) for specs in ([], ["new_vm:vm-99@+20s"]))
    assert [r[:4] for r in struck if not r.key.startswith(b"vm-99")] == [r[:4] for r in plain]
    times = [r.content.time_unix_nano for r in struck if r.key == b"vm-99" and isinstance(r.content, Scrape)]
    assert START + 20 * SECOND <= min(times) < START + 25 * SECOND


def test_late_records_are_the_same_records_later(simulate):
    plain, struck = (list(simulate(*specs).records()) for specs in ([], ["late:vm-07@+20s/20s"]))
    assert sorted(r[:3] for r in plain) == sorted(r[:3] for r in struck)
    arrival = {r[:3]: r.timestamp_ms for r in plain}
    held = [r for r in struck if r.timestamp_ms != arrival[r[:3]]]
    assert {r.key for r in held} == {b"vm-07"}
    assert {r.timestamp_ms - arrival[r[:3]] for r in held} == {40_000}


def test_a_late_machine_still_speaks_in_every_window(simulate):
    struck = simulate("late:vm-07@+20s/20s").records()
    prompt = [
        r.content.time_unix_nano // (10 * SECOND)
        for r in struck
        if r.key == b"vm-07"
        and isinstance(r.content, Scrape)
        and r.timestamp_ms * 10**6 - r.content.time_unix_nano < 20 * SECOND
    ]
    assert set(prompt) == set(range(START // (10 * SECOND), START // (10 * SECOND) + 6))


def test_malformed_records_come_beside_the_good_ones(simulate):
    plain, struck = (list(simulate(*specs).records()) for specs in ([], ["malformed:vm-07@+20s/20s"]))
    broken = [r for r in struck if isinstance(r.content, Malformed)]
    assert [r[:4] for r in struck if r not in broken] == [r[:4] for r in plain]
    assert [r.key for r in broken] == [b"vm-07"] * 4


def test_a_wrong_clock_is_an_hour_ahead(simulate):
    plain, struck = (list(simulate(*specs).records()) for specs in ([], ["wrong_clock:vm-07@+20s/20s"]))
    ahead = [r for r in struck if isinstance(r.content, Scrape) and r.content.time_unix_nano >= START + WRONG_CLOCK]
    assert [r.key for r in ahead] == [b"vm-07"] * 4
    values = [r.content.values.tolist() for r in plain if isinstance(r.content, Scrape)]
    assert values == [r.content.values.tolist() for r in struck if isinstance(r.content, Scrape)]
    lines = [s.line.time_unix_nano for r in struck if isinstance(r.content, Lines) for s in r.content.lines]
    assert max(lines) >= START + WRONG_CLOCK


def test_a_log_burst_adds_lines_of_its_template_on_its_machine(simulate):
    plain, struck = (list(simulate(*specs).records()) for specs in ([], ["log_burst:vm-07@+20s/20s"]))
    simulation = simulate("log_burst:vm-07@+20s/20s")
    (series,) = simulation.fault_facts(simulation.settings.faults[0])["series"]
    before, after = (
        [(r.key, s) for r in rs if isinstance(r.content, Lines) for s in r.content.lines] for rs in (plain, struck)
    )
    added = set(after) - set(before)
    assert set(before) <= set(after)
    assert {(key, simulated.template.masked) for key, simulated in added} == {(b"vm-07", series)}
    assert len(added) == BURST_RATE * 20


def test_a_collector_that_gathers_lines_for_a_shorter_time_sends_the_same_lines_sooner(simulate):
    faults = ("log_burst:vm-12@+20s/10s", "late:vm-05@+20s/10s")
    usual, soon = simulate(*faults, jitter=SECOND), simulate(*faults, jitter=SECOND, log_batch=SECOND // 5)
    arrivals = [record.timestamp_ms for record in soon.records()]
    assert arrivals == sorted(arrivals)
    assert sorted(lines_of(soon)) == sorted(lines_of(usual))
    held_back = [arrival - time for machine, arrival, time, _ in with_arrivals(soon) if machine != b"vm-05"]
    assert 0 < max(held_back) < 1_300_000_000 < max(a - t for m, a, t, _ in with_arrivals(usual) if m != b"vm-05")


def with_arrivals(simulation):
    """Of each log line its machine, the time in ns at which it arrives and its own, and its text."""
    return [
        (record.key, record.timestamp_ms * 1_000_000, one.line.time_unix_nano, one.line.body)
        for record in simulation.records()
        if isinstance(record.content, Lines)
        for one in record.content.lines[record.part]
    ]


def lines_of(simulation):
    """Log lines without their arrival."""
    return [(machine, time, body) for machine, _, time, body in with_arrivals(simulation)]


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("seed", -1, "seed -1"),
        ("seed", 2**32, "seed 4294967296"),
        ("log_batch", 6 * SECOND, "log-batch 6s: give 10ms or more, at most the scrape interval"),
        ("format", "xml", "topic-format 'xml'"),
        ("scrape_interval", SECOND // 100, "scrape-interval 0.01s"),
        ("scrape_interval", 15 * SECOND, "scrape-interval 15s: usual records would be late"),
    ],
)
def test_settings_that_make_no_sense_are_refused(field, value, message):
    with pytest.raises(UserError, match=message):
        Simulation(Settings(START, SECOND, **{field: value}))
