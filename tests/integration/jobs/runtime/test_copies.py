"""Second copies of a job, started at random moments: one is at work, nothing is lost or doubled.

Two starts of enrichment; `make test-copies` has 25 of each job that KAPPA_COPIES_JOBS names. A job whose input needs
two others has hours of it before, and reads it bit by bit: the two cores are the copies' alone.
"""

import json
import os
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import orjson
import pytest
from confluent_kafka import Producer, TopicPartition

from connectors.kafka.admin import apply, connect
from connectors.kafka.client import fetch_committed, open_consumer
from connectors.kafka.offsets import Log, missing
from connectors.kafka.retries import retrying
from infra.contract.offsets import Offsets
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from jobs.runtime.settings import Settings
from jobs.table import JOBS as JOB_TABLE
from ops.launcher import topics_of
from tests.chaos.processes import Job
from tests.chaos.reading import read_table, read_topic
from tests.chaos.verify import Findings, compare_novelties, compare_statistics
from tests.integration.conftest import free_ports
from tests.integration.copies import PAUSE_SECONDS, START_SECONDS, STARTS, report, start_copies
from tests.waiting import until

JOBS = os.environ.get("KAPPA_COPIES_JOBS", "enrichment").split(",")
CHAIN = ("enrichment", "statistics", "detector")  # each needs the ones before it
MACHINES = 8
HAS_BACKLOG = {"detector"}
BACKLOG_LINES = 60_000  # a second apart
BACKLOG_BATCH = {"KAPPA_MAX_OFFSETS_PER_TRIGGER": "10"}


class Feed(threading.Thread):
    """Numbered log lines of a few machines: the last hours' at once, or twenty a second until `stop`."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(daemon=True)
        self.producer, self.over, self.sent = Producer({"bootstrap.servers": bootstrap}), threading.Event(), 0

    def send_backlog(self) -> None:
        """Of the time until now. Each five minutes one machine comes and one goes, which are novelties."""
        now = time.time()
        for number in range(BACKLOG_LINES):
            self._send(now - BACKLOG_LINES + number, number // 300 + number % MACHINES)
            self.producer.poll(0)
        assert not self.producer.flush(60)

    def run(self) -> None:
        while not self.over.wait(0.05):
            self._send(time.time(), self.sent % MACHINES)
        assert not self.producer.flush(60)

    def stop(self) -> None:
        """It sends no more, and what it has sent is in the log."""
        self.over.set()
        if self.is_alive():
            self.join()

    def _send(self, seconds: float, machine: int) -> None:
        line = {"time_unix_nano": int(seconds * 1e9), "machine": f"vm-{machine}", "body": f"n {self.sent}"}
        self.producer.produce("telemetry.lines", json.dumps(line).encode(), timestamp=int(seconds * 1000))
        self.sent += 1


class Lab:
    """A broker, and every copy of a job that was started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.broker = KafkaBroker(home, free_ports(2), heap="400m", jars=default_jars())
        self.settings = Settings(home=home, kafka_bootstrap=self.broker.address)
        self.topics = topics_of(self.settings)
        self.environment = {
            "KAPPA_HOME": str(home),
            "KAPPA_KAFKA_BOOTSTRAP": self.broker.address,
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_ARCHIVE_TRIGGER_SECONDS": "2",
            "KAPPA_JARS": str(default_jars()),
            "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
        }
        self.copies = 0
        self.started: list[Job] = []

    def copy(self, job: str) -> Job:
        self.copies += 1
        environment = self.environment | (BACKLOG_BATCH if job in HAS_BACKLOG else {})
        copy = Job(job, ("run", job), environment, self.home / f"log/{job}-{self.copies}.log")
        copy.start()
        self.started.append(copy)
        return copy

    def group(self, job: str) -> str:
        """The consumer group of the job's query, or of one of its queries."""
        return "kappa.live." + ("archive.log" if job == "archive" else job)

    def progress(self, job: str) -> int:
        """How many batches the job has committed."""
        connection, group = {"bootstrap.servers": self.broker.address}, f"{self.group(job)}.driver.sink"
        with open_consumer(connection, group, "read_uncommitted") as consumer:
            place = [TopicPartition("sink.progress", 0)]
            (found,) = retrying(60)(lambda: fetch_committed(consumer, place))
        return max(0, found.offset)


@pytest.fixture
def lab(tmp_path):
    lab = Lab(tmp_path)
    lab.broker.spawn()
    try:
        until(lab.broker.ready, lab.broker.ready_seconds, "the broker does not start")
        lines = lab.topics["telemetry.lines"].model_copy(update={"timestamp": "CreateTime"})  # a backlog's is long ago
        apply(connect(lab.broker.address), [lines, *(topic for topic in lab.topics if topic.name != lines.name)])
        yield lab
    finally:
        for job in lab.started:
            job.clean()
        lab.broker.kill()


@pytest.mark.timeout(600 + 240 * STARTS)
@pytest.mark.parametrize("job", JOBS)
def test_one_copy_is_at_work_and_nothing_is_lost_or_doubled(lab, job):
    feed = Feed(lab.broker.address)
    before = CHAIN[: CHAIN.index(job)] if job in CHAIN else ()
    if job in HAS_BACKLOG:
        work_through_backlog(lab, feed, before)
    else:
        feed.start()
    for name in (job,) if job in HAS_BACKLOG else (*before, job):
        at_work = lab.copy(name)
        until(lambda name=name: lab.progress(name), START_SECONDS, f"{name} commits nothing")
    at_work, pauses = start_copies(
        job, at_work, lambda: lab.copy(job), lambda: lab.progress(job), "another copy of this job runs on"
    )
    feed.stop()
    if job in HAS_BACKLOG:
        at_work.stop()
        at_work.environment = lab.environment
        at_work.start()
    until(lambda: caught_up(lab, (*before, job)), START_SECONDS, "the jobs do not catch up", 2)
    findings = compare(lab, feed.sent, (*before, job))
    report(job, {"starts": STARTS, "lines": feed.sent, "pause_seconds": pauses, "findings": findings})
    assert findings == []
    assert max(pauses) < PAUSE_SECONDS, pauses


def work_through_backlog(lab: Lab, feed: Feed, jobs: Sequence[str]) -> None:
    """Have these jobs work through the telemetry of the last hours, and end."""
    feed.send_backlog()
    running = [lab.copy(job) for job in jobs]
    until(lambda: all(map(lab.progress, jobs)) and caught_up(lab, jobs), START_SECONDS, "the jobs do not catch up", 1)
    for one in running:
        one.stop()


def caught_up(lab: Lab, jobs: Sequence[str]) -> bool:
    """Whether each job has committed that it has read its input to the end."""
    log = Log(lab.broker.address)
    return all(missing(log.committed(lab.group(job), ends), ends) == 0 for job, ends in inputs(lab, log, jobs))


def inputs(lab: Lab, log: Log, jobs: Sequence[str]) -> list[tuple[str, Offsets]]:
    """Where the topics that have records and that each job reads end, in the order of the chain."""
    filled = {name: log.ends([name]) for name in ("telemetry.lines", "events", "statistics")}
    reads = {job: {topic.name for topic in JOB_TABLE[job].inputs(lab.topics)} for job in jobs}
    return [(job, {p: end for name in filled if name in reads[job] for p, end in filled[name].items()}) for job in jobs]


def compare(lab: Lab, sent: int, jobs: Sequence[str]) -> list[str]:
    """Examples of what was lost or doubled."""
    findings = Findings()
    events = read_topic(lab.broker.address, "events")
    if "enrichment" in jobs:
        bodies = Counter(
            body
            for record in map(orjson.loads, (record.value for record in events if record.key is not None))
            for body in record["events"]["body"]
        )
        findings.multisets("events", Counter(f"n {number}" for number in range(sent)), bodies)
    if "statistics" in jobs:
        compare_statistics(findings, events, read_topic(lab.broker.address, "statistics"))
    if "detector" in jobs:
        topics = (read_topic(lab.broker.address, name) for name in ("statistics", "novelties"))
        compare_novelties(findings, *topics)
        assert findings.compared["novelties: fold"]
    if "archive" in jobs:
        rows = read_table(lab.settings.delta_of("log"), ["topic", "partition", "offset"])
        found = Counter((r["partition"], r["offset"]) for r in rows if r["topic"] == "telemetry.lines")
        lines = read_topic(lab.broker.address, "telemetry.lines")
        findings.multisets("archive", Counter((r.place.partition, r.place.offset) for r in lines), found)
    return findings.examples
