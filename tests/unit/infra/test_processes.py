import os
import signal
import subprocess
import sys
import threading

import psutil
import pytest

from infra.processes import run, signals_delayed


@pytest.fixture
def sigterm_raises():
    def leave(number, _frame):
        raise SystemExit(number)

    previous = signal.signal(signal.SIGTERM, leave)
    yield
    signal.signal(signal.SIGTERM, previous)


def test_a_signal_waits_for_the_end_of_the_block(sigterm_raises):
    done = []
    with pytest.raises(SystemExit), signals_delayed():
        signal.raise_signal(signal.SIGTERM)
        done.append("rest of the block")
    assert done == ["rest of the block"]


def test_a_child_does_not_inherit_the_waiting(sigterm_raises):
    with signals_delayed():
        child = subprocess.Popen(["sleep", "600"])
    child.terminate()
    assert child.wait(20) == -signal.SIGTERM


def test_another_thread_may_use_it():
    reached = []

    def use():
        with signals_delayed():
            reached.append(True)

    thread = threading.Thread(target=use)
    thread.start()
    thread.join(20)
    assert reached == [True]


def test_run_gives_code_and_output():
    assert run(["sh", "-c", "echo $WORD; echo bad >&2; exit 3"], {"WORD": "hello"}) == (3, "hello\nbad\n")


def test_an_exception_ends_the_command(sigterm_raises):
    timer = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGTERM])
    timer.start()
    with pytest.raises(SystemExit):
        run([sys.executable, "-c", "import time; time.sleep(600)  # orphan?"])
    assert not any("orphan?" in " ".join(child.cmdline()) for child in psutil.Process().children())
