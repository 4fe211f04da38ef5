"""The supervisor, with small commands in place of jobs."""

import os
import signal
import socket
import sys
import threading
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from jobs.runtime import supervisor
from jobs.runtime.settings import Settings
from jobs.runtime.supervisor import Child, supervise
from tests.clock import Clock

DEADLINE_SECONDS = 30
# A job that notes its start and then does as its name says; KAPPA_TEST_NOTES is the folder of the notes.
FAKE = """
import os, pathlib, signal, sys, time
job = sys.argv[-1]
notes = pathlib.Path(os.environ["KAPPA_TEST_NOTES"])
def note(what):
    with (notes / job).open("a") as file:
        file.write(what + "\\n")
def stop(*_):
    note("stopped")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop if job != "stubborn" else signal.SIG_IGN)
note("started " + os.environ["KAPPA_METRICS_PORT"])
if job == "dies":
    sys.exit(1)
if job == "refuses":
    while not (notes / "lives").exists():  # so that there is one to be stopped
        time.sleep(0.01)
    sys.exit(2)
time.sleep(60)
"""


@pytest.fixture
def notes(tmp_path, monkeypatch):
    """Jobs are the fake from now on; gives the folder of their notes."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    launcher = tmp_path / "python"
    launcher.write_text(f'#!/bin/sh\nexec {sys.executable} {script} "$@"\n')
    launcher.chmod(0o755)
    folder = tmp_path / "notes"
    folder.mkdir()
    monkeypatch.setenv("KAPPA_TEST_NOTES", str(folder))
    monkeypatch.setattr(supervisor.sys, "executable", str(launcher))
    monkeypatch.setattr(supervisor, "BACKOFF_SECONDS", (0.1, 0.2, 0.4))
    return folder


def read(notes, job):
    return (notes / job).read_text().splitlines() if (notes / job).exists() else []


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition):
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        threading.Event().wait(0.02)


class Supervised(threading.Thread):
    """`supervise` in a thread."""

    def __init__(self, *jobs, **settings):
        super().__init__()
        self.jobs, self.settings, self.stop, self.code = list(jobs), Settings(**settings), threading.Event(), None
        self.start()

    def run(self):
        self.code = supervise(self.jobs, self.settings, self.stop)

    def end(self):
        self.stop.set()
        self.join(DEADLINE_SECONDS)
        return self.code


def test_a_job_that_dies_is_started_again_and_the_others_go_on(notes):
    run = Supervised("dies", "lives")
    wait_for(lambda: len(read(notes, "dies")) >= 3 and read(notes, "lives"))
    assert run.end() == 0
    assert read(notes, "lives") == ["started 9401", "stopped"]


def test_a_killed_job_is_started_again(notes):
    child = Child("lives", dict(os.environ, KAPPA_METRICS_PORT="1"))
    child.start()
    wait_for(lambda: read(notes, "lives"))
    child.process.kill()
    wait_for(lambda: not child.restart_if_ended() and len(read(notes, "lives")) == 2)
    child.process.kill()
    child.process.wait()


def get(port, path):
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def test_one_that_refuses_stays_down_visibly_and_the_others_go_on(notes):
    port = free_port()
    run = Supervised("refuses", "lives", "dies", metrics_port=port)
    wait_for(lambda: read(notes, "refuses") and listens(port))
    status, reason = get(port, "/healthz")
    assert (status, reason.split()[:6]) == (503, ["refuses", "ended", "with", "exit", "code", "2:"])
    assert 'kappa_application_refused{application="refuses"} 1.0' in get(port, "/metrics")[1]
    seen = len(read(notes, "dies"))
    wait_for(lambda: len(read(notes, "dies")) > seen + 1)
    assert run.is_alive()
    assert run.end() == 2
    assert read(notes, "refuses") == [f"started {port}"]
    assert read(notes, "lives") == [f"started {port + 1}", "stopped"]
    assert not listens(port)


def test_all_refusing_ends_the_supervisor(notes):
    (notes / "lives").touch()
    run = Supervised("refuses", metrics_port=0)
    run.join(DEADLINE_SECONDS)
    assert run.code == 2


def test_of_those_that_run_together_one_refusal_ends_all(notes):
    children = [Child(name, dict(os.environ, KAPPA_METRICS_PORT="0")) for name in ("lives", "refuses")]
    assert supervisor.keep_running(children, Settings(), threading.Event(), together=True) == 2
    assert read(notes, "lives") == ["started 0", "stopped"]


def test_a_stop_reaches_every_job_once(notes):
    run = Supervised("a", "b", metrics_port=7000)
    wait_for(lambda: read(notes, "a") and read(notes, "b"))
    assert run.end() == 0
    assert (read(notes, "a"), read(notes, "b")) == (["started 7000", "stopped"], ["started 7001", "stopped"])


def test_any_free_port_is_so_for_each_job(notes):
    run = Supervised("a", metrics_port=0)
    wait_for(lambda: read(notes, "a"))
    run.end()
    assert read(notes, "a")[0] == "started 0"


def test_one_that_ignores_the_stop_is_killed(notes):
    child = Child("stubborn", dict(os.environ, KAPPA_METRICS_PORT="1"))
    child.start()
    wait_for(lambda: read(notes, "stubborn"))
    supervisor._stop([child], patience=0.3)
    assert child.process.returncode == -signal.SIGKILL


def test_the_wait_grows_with_each_failure_up_to_the_last_and_a_steady_job_begins_anew(monkeypatch):
    clock = Clock(1_000.0)
    monkeypatch.setattr(supervisor, "time", clock)
    child, waits = Child("dies", {}), []
    for _ in range(7):
        child.started = clock.now
        child._plan_restart(1)
        waits.append(child.due - clock.now)
    assert waits == [1, 2, 5, 10, 30, 30, 30]

    child.started = clock.now
    clock.sleep(supervisor.STEADY_SECONDS + 1)
    child._plan_restart(1)
    assert child.due - clock.now == 1
