import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ops.simulator import cloud, signals
from ops.simulator.faults import IDLE, USER, Effect
from ops.simulator.signals import GAUGES, Signals

MACHINES = cloud.build()
INTERVAL_S = 5.0
START_S = 1_795_000_000.0


def run(steps, seed=1, machines=MACHINES, effects=lambda step: ()):
    cloud_signals = Signals(machines, seed, INTERVAL_S)
    times = [np.full(len(machines), START_S + step * INTERVAL_S) for step in range(steps)]
    return np.array([cloud_signals.advance(time, effects(step)) for step, time in enumerate(times)])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=10)
def test_a_seed_gives_the_same_values_again(seed):
    assert np.array_equal(run(5, seed), run(5, seed))


def test_another_seed_gives_other_values():
    assert not np.isclose(run(3, 1), run(3, 2)).all(axis=(0, 2)).any()


def test_a_machine_added_at_the_end_changes_no_other():
    more = (*MACHINES, *cloud.newcomers(MACHINES, ["vm-98", "vm-99"]))
    assert np.array_equal(run(5), run(5, machines=more)[:, : len(MACHINES)])


def test_a_machine_has_its_series_once():
    for role in signals.ROLE_SIGNALS:
        names = [signal.instrument.series for signal in signals.of_role(role)]
        assert len(names) == len(set(names)) == 29


def test_counters_are_whole_and_never_fall():
    counters = run(50)[:, :, GAUGES:]
    assert (np.diff(counters, axis=0) >= 0).all()
    assert np.array_equal(counters, np.round(counters))
    assert [s.instrument.monotonic for s in signals.of_role("AMF")] == [False] * GAUGES + [True] * (29 - GAUGES)


def test_cpu_and_memory_states_sum_to_one():
    values = run(50)
    names = [signal.instrument.name for signal in signals.of_role("AMF")]
    for metric in ("system.cpu.utilization", "system.memory.utilization"):
        shares = values[:, :, [name == metric for name in names]]
        assert shares.min() >= 0
        assert shares.sum(axis=2) == pytest.approx(1, abs=1e-4)


def test_the_rhythm_is_daily_low_at_night_and_high_in_the_evening():
    hours = np.arange(24) * 3600.0
    day = signals.rhythm(hours)
    assert np.allclose(day, signals.rhythm(hours + signals.DAY_S))
    assert 2 <= day.argmin() <= 8
    assert 16 <= day.argmax() <= 22
    assert -1 <= day.min() < -0.5 < 0.5 < day.max() <= 1


def test_noise_is_shared_by_the_guests_of_one_hypervisor():
    cloud_signals = Signals(MACHINES, 1, INTERVAL_S)
    column = cloud_signals.column(0, "system.cpu.utilization{state=steal}")
    correlation = np.corrcoef(run(400)[:, :, column].T)
    hosts = np.array([machine.hypervisor or machine.name for machine in MACHINES])
    together = (hosts[:, None] == hosts) & ~np.eye(len(hosts), dtype=bool)
    apart = hosts[:, None] != hosts
    assert correlation[together].mean() > 0.1
    assert abs(correlation[apart].mean()) < 0.05


def test_an_effect_changes_its_series_and_what_follows_from_it():
    plain, struck = run(6), run(6, effects=lambda step: [(5, Effect(USER, add=0.3), 1.0)] if step >= 3 else ())
    changed = {tuple(where) for where in np.argwhere(plain != struck).tolist()}
    columns = Signals(MACHINES, 1, INTERVAL_S)
    user, idle = columns.column(5, USER), columns.column(5, IDLE)
    assert changed == {(step, 5, column) for step in (3, 4, 5) for column in (user, idle)}
    assert (struck - plain)[3:, 5, user] == pytest.approx(0.3, abs=1e-4)
