"""`kappa simulate` as a process: it ends on SIGTERM within seconds, also while no broker answers."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import until

LIMIT_SECONDS = 12
# A broker in a process of its own: librdkafka's mock, with the simulator's topics.
BROKER = """
import sys, time
from confluent_kafka import Producer
from ops.simulator.simulation import Settings, Simulation
mock = Producer({"bootstrap.servers": "-", "test.mock.num.brokers": 1, "log_level": 0})
for topic in Simulation(Settings(0, None)).topics():
    mock.list_topics(topic, timeout=10)
(broker,) = mock.list_topics(timeout=10).brokers.values()
print(f"{broker.host}:{broker.port}", flush=True)
time.sleep(120)
"""


@pytest.fixture
def broker():
    process = subprocess.Popen([sys.executable, "-c", BROKER], stdout=subprocess.PIPE, text=True)
    process.address = process.stdout.readline().strip()
    yield process
    process.kill()
    process.wait()


@pytest.fixture
def simulate(tmp_path):
    """Starts the simulator against an address; its truth lies in `folder`."""
    started = []

    def start(bootstrap, *options):
        command = [sys.executable, "-m", "ops.cli", "simulate", "--json", "--machines", "5", *options]
        command += ["--bootstrap", bootstrap, "--truth", str(tmp_path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        process.folder = tmp_path
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def _ends(process):
    """Exit code and last words after SIGTERM."""
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    _, errors = process.communicate(timeout=60)
    assert time.monotonic() - began < LIMIT_SECONDS
    return process.returncode, errors


def _has_begun(process):
    return (process.folder / "plan.json").exists()


def test_with_a_broker_it_ends_in_good_order(broker, simulate):
    process = simulate(broker.address)
    until(lambda: _has_begun(process), 60, "it has not begun", pause=0.1)
    assert _ends(process)[0] == 0


def test_it_ends_when_its_broker_is_gone(broker, simulate):
    process = simulate(broker.address, "--speed", "max", "--duration", "24h")
    until(lambda: _has_begun(process), 60, "it has not begun", pause=0.1)
    broker.kill()
    broker.wait()
    gone = time.monotonic()
    # At full speed a second is many rounds: by then it has sent what nobody takes.
    until(lambda: time.monotonic() - gone > 1, 10, "time stands still", pause=0.1)
    code, errors = _ends(process)
    assert code == 2 and re.search(r"[\d,]+ records were not delivered", errors)


def test_it_ends_while_it_looks_for_a_broker(simulate):
    process = simulate("127.0.0.1:1")
    until(lambda: _catches_sigterm(process), 60, "it does not listen to signals", pause=0.1)
    code, errors = _ends(process)
    assert code == 2 and "no Kafka broker answers" in errors


def _catches_sigterm(process):
    status = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
    return caught >> (signal.SIGTERM - 1) & 1
