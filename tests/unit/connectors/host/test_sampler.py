import subprocess
import sys
from itertools import pairwise

import psutil
import pytest

from connectors.host.sampler import Sampler
from tests.waiting import until


def values(points):
    return {instrument.series: value for instrument, value in points}


def test_the_machines_own_figures_are_there():
    found = values(Sampler(top=3).sample())
    assert found["system.memory.usage{state=used}"] == pytest.approx(psutil.virtual_memory().used, rel=0.2)
    assert found["system.filesystem.utilization{mountpoint=/}"] == pytest.approx(
        psutil.disk_usage("/").percent / 100, abs=0.05
    )
    assert found["system.cpu.load_average.1m"] == pytest.approx(psutil.getloadavg()[0], abs=1.0)
    assert found["system.processes.count"] == pytest.approx(len(psutil.pids()), rel=0.2)


def test_cpu_states_sum_to_one():
    sampler = Sampler(top=0)
    before = sum(psutil.cpu_times())
    # psutil divides by one CPU second at least, idle ones included: of less the states are less than the whole.
    until(lambda: sum(psutil.cpu_times()) > before + 1.5, 30, "no CPU time goes by", 0.1)
    found = values(sampler.sample())
    shares = [value for series, value in found.items() if series.startswith("system.cpu.utilization")]
    assert sum(shares) == pytest.approx(1, abs=0.02)


def test_points_of_a_metric_lie_side_by_side_and_no_series_comes_twice():
    points = Sampler(top=5).sample()
    names = [instrument.name for instrument, _ in points]
    changes = sum(one != other for one, other in pairwise(names))
    assert changes == len(set(names)) - 1
    assert len({instrument.series for instrument, _ in points}) == len(points)


def test_counters_are_monotonic_sums_and_never_fall():
    sampler = Sampler(top=0)
    first, second = sampler.sample(), sampler.sample()
    counters = {instrument.series: value for instrument, value in first if instrument.monotonic}
    assert all(value >= counters[i.series] for i, value in second if i.monotonic)
    assert all(i.type == "sum" for i, _ in second if i.monotonic)


def test_the_largest_process_groups_are_reported_and_stay_so():
    sampler = Sampler(top=1)
    (name,) = {
        dict(i.attributes)["process.executable.name"] for i, _ in sampler.sample() if i.name == "process.memory.usage"
    }
    sizes = {group: facts.memory_bytes for group, facts in sampler._groups().items()}
    assert sizes[name] == pytest.approx(max(sizes.values()), rel=0.2)
    assert name in {dict(i.attributes).get("process.executable.name") for i, _ in sampler.sample()}


def test_a_busy_process_shows_in_its_group():
    sampler = Sampler(top=1000)
    # A name of its own tells it apart from whatever else this machine runs.
    code = "import ctypes; ctypes.CDLL(None).prctl(15, b'kappa-busy'); print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        psutil.Process(process.pid).cpu_times()
        while sum(psutil.Process(process.pid).cpu_times()[:2]) < 0.3:
            pass
        found = values(sampler.sample())
        process.kill()
    assert found["process.group.count{process.executable.name=kappa-busy}"] == 1
    assert found["process.cpu.utilization{process.executable.name=kappa-busy}"] > 0.05
    assert found["process.memory.usage{process.executable.name=kappa-busy}"] > 2**20
