"""A server that takes no time to start."""

import sys
import time

import psutil

from infra.local.server import Server

# Ignores SIGTERM on demand, and has a child, as Elasticsearch's launcher does.
PROGRAM = """
import pathlib, signal, subprocess, sys, time
if "stubborn" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(["sleep", "600"])
if "fail" in sys.argv:
    child.kill()
    sys.exit("ERROR it broke")
pathlib.Path("ready").write_text(str(child.pid))
time.sleep(600)
"""


class Toy(Server):
    flag = "--toy-port"
    mode = "normal"

    @property
    def address(self):
        return f"127.0.0.1:{self.ports[0]}"

    def check(self):
        pass

    def prepare(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "ready").unlink(missing_ok=True)
        return [sys.executable, "-c", PROGRAM, self.mode], {}

    def ready(self):
        return (self.folder / "ready").is_file() and bool((self.folder / "ready").read_text())

    def child(self):
        return int((self.folder / "ready").read_text())


def wait_until(condition):
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline, "not in time"
        time.sleep(0.02)


def gone(pid):
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
