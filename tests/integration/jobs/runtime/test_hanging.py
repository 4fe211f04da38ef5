"""A job whose Python workers are stopped, and one that retention overtakes: what its probes and its exit say."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

import psutil
import pytest
from confluent_kafka import Producer, TopicPartition

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from infra.contract.topics import load_topics
from infra.contract.watermarks import watermark_value
from jobs.table import JOBS
from tests.integration.conftest import free_ports
from tests.waiting import until

T = TypeVar("T")

SECONDS = 240
START = (int(time.time()) - 3600) * 1000  # ms; of a week ago the broker would delete it under the test


class Rules:
    """The job `rules`, as a process: it reads the four partitions of `events`, of a generation of its own."""

    def __init__(self, servers, home: Path) -> None:
        self.generation = f"hang-{uuid.uuid4().hex[:6]}"
        self.topics = JOBS.topics_in(load_topics(), self.generation)
        self.events = self.topics["events"].name
        self.admin = admin.connect(servers.bootstrap)
        admin.apply(self.admin, self.topics)
        self.log, self.group = Log(servers.bootstrap), f"kappa.{self.generation}.rules"
        self.producer, self.sent = Producer({"bootstrap.servers": servers.bootstrap}), 0
        self.port, self.home = free_ports(1), home
        own = {"KAPPA_GENERATION": self.generation, "KAPPA_HOME": str(home), "KAPPA_METRICS_PORT": str(self.port)}
        more = {"KAPPA_KAFKA_BOOTSTRAP": servers.bootstrap, "KAPPA_STALL_SECONDS": "10", "KAPPA_DRIVER_MEMORY": "512m"}
        self.environment = os.environ | own | more

    def start(self) -> subprocess.Popen:
        with (self.home / "rules.log").open("ab") as output:
            command = [sys.executable, "-m", "ops.cli", "run", "rules"]
            self.process = subprocess.Popen(command, env=self.environment, stdout=output, stderr=output)
        return self.process

    def until(self, condition: Callable[[], T], otherwise: str) -> T:
        """What `condition` gives once it is true; fails with the job's output after a deadline or if the job ends."""

        def reached() -> T:
            found = condition()
            assert self.process.poll() is None, f"{otherwise}: the job ended\n{self.output()}"
            return found

        try:
            return until(reached, SECONDS, otherwise)
        except TimeoutError as error:
            pytest.fail(f"{error}; /healthz: {self.get('/healthz')}\n{self.output()}")

    def send(self) -> None:
        """A watermark into each partition, a second after the one before."""
        self.sent += 1
        sent_ms = START + self.sent * 1000
        for partition in range(4):
            self.producer.produce(
                self.events, watermark_value(sent_ms * 1_000_000), partition=partition, timestamp=sent_ms
            )
        assert self.producer.flush(30) == 0

    def lag(self) -> int:
        ends = self.log.ends([self.events])
        return sum(ends.values()) - sum(self.log.committed(self.group, ends).values())

    def delete(self, ahead: int) -> None:
        """Delete the records of partition 0 up to so many after what is committed."""
        offset = self.log.committed(self.group, [(self.events, 0)])[self.events, 0] + ahead
        for deleted in self.admin.delete_records([TopicPartition(self.events, 0, offset)]).values():
            deleted.result()

    def get(self, path: str) -> tuple[int, str]:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def metric(self, name: str) -> list[float]:
        lines = self.get("/metrics")[1].splitlines()
        return [float(line.rpartition(" ")[2]) for line in lines if line.startswith(f'{name}{{job="rules"')]

    def output(self) -> str:
        return (self.home / "rules.log").read_text()


@pytest.fixture
def rules(servers, tmp_path):
    return Rules(servers, tmp_path)


def workers(process: subprocess.Popen) -> list[psutil.Process]:
    """The job's Python workers and what they are forked from."""
    return [one for one in psutil.Process(process.pid).children(recursive=True) if "pyspark.daemon" in command(one)]


def command(process: psutil.Process) -> str:
    """Its command line; empty, if it has ended meanwhile."""
    try:
        return " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return ""


def send(processes: list[psutil.Process], number: int) -> None:
    """A signal to those that are still there."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)


@pytest.mark.timeout(900)
def test_a_job_that_hangs_says_so_and_one_that_retention_overtakes_ends_with_the_count(rules: Rules):
    process = rules.start()
    try:
        rules.until(lambda: rules.get("/readyz")[0] == 200, "ready with nothing to read")
        rules.send()
        rules.until(lambda: rules.lag() == 0, "the first batch is committed")
        rules.until(lambda: rules.metric("kappa_event_time_seconds") == [START / 1000 + 1], "its event time")

        stopped = workers(process)
        assert stopped
        send(stopped, signal.SIGSTOP)
        for _ in range(3):
            rules.send()
        _, reason = rules.until(lambda: (found := rules.get("/healthz"))[0] == 503 and found, "it is told")
        assert "rules: no progress for" in reason
        assert rules.get("/readyz")[0] == 503
        rules.until(lambda: sum(rules.metric("kappa_lag_records")) == 12, "measured while the batch hangs")
        rules.until(lambda: max(rules.metric("kappa_lag_seconds")) > 0, "their age")
        rules.until(lambda: max(rules.metric("kappa_no_progress_seconds")) >= 10, "for how long")
        assert process.poll() is None

        send(stopped, signal.SIGCONT)
        rules.until(lambda: rules.lag() == 0, "it goes on")
        rules.until(lambda: rules.get("/healthz")[0] == 200, "it is healthy again")

        process.send_signal(signal.SIGSTOP)
        stopped = psutil.Process(process.pid).children(recursive=True)
        send(stopped, signal.SIGSTOP)
        for _ in range(5):
            rules.send()
        rules.delete(ahead=3)
        send(stopped, signal.SIGCONT)
        process.send_signal(signal.SIGCONT)
        assert process.wait(SECONDS) == 2, rules.output()
        message = f"rules: 3 records were deleted before they were read (offsets {rules.events}-0 4 to 6)"
        assert f"kappa: {message}" in rules.output()
    finally:
        process.kill()
        process.wait()

    (rules.home / "rules.log").write_text("")
    again = rules.start()
    assert again.wait(SECONDS) == 2
    assert f"kappa: {message}" in rules.output()
    assert "started" not in rules.output(), "it is refused before Spark starts"
