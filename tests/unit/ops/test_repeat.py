import subprocess
import sys
import threading
import time

import pytest
from prometheus_client import REGISTRY

from infra.errors import UserError
from ops import repeat as module
from ops.repeat import Rounds, once, repeat, run_until
from tests.clock import Clock
from tests.waiting import until


def test_without_a_time_it_acts_once_and_its_failure_is_the_commands():
    done = []
    repeat(None, lambda: done.append(1))
    assert done == [1]
    with pytest.raises(ZeroDivisionError):
        repeat(None, lambda: 1 / 0)


def test_a_time_that_is_none_is_named():
    with pytest.raises(UserError, match=r"--every 'daily'.*whole number and a unit"):
        repeat("daily", lambda: None)


def test_a_round_is_the_same_command_once():
    assert once(["-m", "ops.cli", "archive", "maintain", "--every", "1d", "--json"]) == [
        "-m",
        "ops.cli",
        "archive",
        "maintain",
        "--json",
    ]
    assert once(["kappa", "savepoint", "create", "n", "--every=5m", "--keep", "3"])[-3:] == ["n", "--keep", "3"]


def test_a_round_says_whether_it_has_failed_and_ends_with_the_command():
    stop = threading.Event()
    run_until(stop, [sys.executable, "-c", "pass"])
    with pytest.raises(subprocess.CalledProcessError, match="exit status 2"):
        run_until(stop, [sys.executable, "-c", "raise SystemExit(2)"])
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    run_until(stop, [sys.executable, "-c", "import time; time.sleep(300)"])
    assert time.monotonic() - began < 60


def test_a_round_that_fails_is_not_the_last(monkeypatch):
    monkeypatch.setenv("KAPPA_METRICS_PORT", "0")
    stop, rounds = threading.Event(), []

    def act():
        rounds.append(1)
        if len(rounds) == 1:
            raise OSError("the disk is full")

    thread = threading.Thread(target=Rounds(0.01, act).run, args=(stop,))
    thread.start()
    try:
        until(lambda: len(rounds) > 3, 30, "it goes on", pause=0.01)
    finally:
        stop.set()
        thread.join(30)
    assert REGISTRY.get_sample_value("kappa_maintenance_done_timestamp_seconds") > 1_700_000_000


def test_it_is_unhealthy_when_no_round_has_succeeded_for_long(monkeypatch):
    clock = Clock(1_000.0)
    monkeypatch.setattr(module, "time", clock)
    rounds = Rounds(60, lambda: None)
    clock.now += 180
    assert rounds.unhealthy() is None
    clock.now += 1
    assert rounds.unhealthy() == "no success for 181 s"
