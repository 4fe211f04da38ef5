import signal
import subprocess
import sys

SCRIPT = "from jobs.runtime.kill_points import reach; reach('written'); reach('committed'); print('went on')"


def run(fault):
    return subprocess.run(
        [sys.executable, "-c", SCRIPT], env={"KAPPA_FAULT": fault}, check=False, capture_output=True, text=True
    )


def test_the_named_point_kills():
    assert run("committed").returncode == -signal.SIGKILL


def test_no_other_point_does():
    assert run("elsewhere").stdout == "went on\n"
