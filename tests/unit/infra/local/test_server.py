import json
import os
import signal
import socket
import subprocess

import pytest

from infra.errors import UserError
from infra.local.server import Running
from tests.unit.infra.local.toy import Toy, gone, wait_until


@pytest.fixture
def toy(tmp_path):
    server = Toy("toy", tmp_path, (21090,))
    yield server
    server.kill()


@pytest.fixture
def started(toy):
    toy.spawn()
    wait_until(toy.ready)
    return toy


def test_another_object_finds_what_runs_and_starts_no_second(started, tmp_path):
    second = Toy("toy", tmp_path, (21090,))
    pid = second.running.pid
    second.spawn()
    assert second.running == started.running
    assert second.running.pid == pid


def test_it_has_its_own_session_so_that_ctrl_c_passes_it_by(started):
    assert os.getsid(started.running.pid) == started.running.pid != os.getsid(0)


def test_stop_ends_the_children_too(started):
    pid, child = started.running.pid, started.child()
    started.stop()
    assert started.running is None
    assert gone(pid)
    assert gone(child)


def test_stop_kills_what_ignores_sigterm(toy, monkeypatch):
    monkeypatch.setattr("infra.local.server.STOP_SECONDS", 0.5)
    toy.mode = "stubborn"
    toy.spawn()
    wait_until(toy.ready)
    pid = toy.running.pid
    toy.stop()
    assert gone(pid)


def test_a_start_after_kill_9_of_the_leader_leaves_no_orphan(started):
    pid, child = started.running.pid, started.child()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: started.running is None)
    assert not gone(child)
    started.spawn()
    assert gone(child)
    assert started.running.pid != pid


def test_a_recycled_pid_is_not_trusted(toy, tmp_path):
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        (tmp_path / "run").mkdir()
        Running(stranger.pid, 1.0, toy.address).write(tmp_path / "run" / "toy.json")
        assert toy.running is None
        toy.kill()
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


@pytest.mark.parametrize("content", ["", '{"pid": 1', json.dumps({"pid": 2**22 + 1, "created": 1.0, "address": "x"})])
def test_a_broken_or_stale_pid_file_means_not_running(toy, tmp_path, content):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "toy.json").write_text(content)
    assert toy.running is None


def test_a_busy_port_is_named_with_its_flag(tmp_path):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        with pytest.raises(UserError, match=rf"port {port} \(toy\) is busy.*--toy-port"):
            Toy("toy", tmp_path, (port,)).check_ports()


def test_a_failure_tells_the_first_fault_of_this_start(toy):
    toy.log.parent.mkdir(parents=True)
    toy.log.write_text("ERROR of an earlier start\n")
    toy.mode = "fail"
    toy.spawn()
    wait_until(lambda: toy.running is None)
    assert str(toy.failed()) == f"toy did not start: ERROR it broke; see {toy.log}"
