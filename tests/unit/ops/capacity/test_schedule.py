import pytest

from ops.capacity.costs import read_costs
from ops.capacity.schedule import Stage, backlog_rate, settle, shares

# `make bench-scaling`, statistics: machines, partitions, cores, µs of CPU time an event, events a second
# (docs/history/benchmarks.md, "Machines, partitions, cores").
MEASURED = [
    (1_000, 4, 2, 2.2, 596_000),
    (10_000, 4, 2, 6.7, 220_000),
    (100_000, 4, 2, 24.3, 59_500),
    (1_000, 4, 2, 5.9, 234_000),
    (1_000, 1, 2, 8.8, 87_000),
    (1_000, 16, 2, 7.4, 172_000),
    (1_000, 4, 1, 5.9, 173_000),
]


def stage(cpu_us=5.0, cores=2, shards=4, fixed=1.0):
    return Stage([1 / shards] * shards, cpu_us, cores, cores, fixed)


@pytest.mark.parametrize(("machines", "partitions", "cores", "cpu_us", "rate"), MEASURED)
def test_the_simulation_is_near_what_was_measured(machines, partitions, cores, cpu_us, rate):
    batch = read_costs().batch
    simulated = Stage(shares(machines, partitions), cpu_us, cores, cores, batch.fixed_seconds)
    assert backlog_rate(simulated, batch.events) == pytest.approx(rate, rel=0.32)


def test_a_batch_ends_with_its_last_core():
    assert stage().batch_seconds(1e6) == pytest.approx(1.0 + 2.5)
    assert Stage([0.7, 0.1, 0.1, 0.1], 5.0, 2, 4, 1.0).batch_seconds(1e6) == pytest.approx(1.0 + 3.5)


def test_one_shard_is_not_faster_with_more_cores():
    assert stage(cores=8, shards=1).batch_seconds(1e6) == stage(cores=1, shards=1).batch_seconds(1e6)


def test_a_light_load_waits_for_the_trigger():
    found = settle(stage(fixed=0.5), 100_000, trigger_seconds=2)
    assert (found.keeps_up, found.batch_seconds, found.busy) == (True, pytest.approx(1.0), pytest.approx(0.25))


def test_longer_batches_settle_where_each_takes_as_long_as_its_events_came():
    found = settle(stage(fixed=2.0), 300_000, trigger_seconds=2)
    assert found.batch_seconds == pytest.approx(2.0 / 0.25)
    assert stage(fixed=2.0).batch_seconds(found.batch_seconds * 300_000) == pytest.approx(found.batch_seconds)


def test_too_much_never_settles():
    found = settle(stage(), 400_000)
    assert (found.keeps_up, found.batch_seconds) == (False, None)


def test_shares_are_those_of_whole_machines_and_the_same_each_time():
    found = shares(1_000, 7)
    assert sum(found) == pytest.approx(1)
    assert max(found) > min(found)
    assert found == shares(1_000, 7)
