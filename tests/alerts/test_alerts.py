"""Faults that are made, to processes that run: each alert is heard, and heard to end. Real Prometheus, Alertmanager.

The rules are the shipped ones with a minute as six seconds. What is not made here fires in promtool alone
(tests/charts/test_alerts.py): a full cluster, the shares of dead letters and late records, the alarm budget.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from confluent_kafka import Producer, TopicPartition

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from infra.contract.topics import load_topics
from infra.contract.watermarks import watermark_value
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.table import JOBS
from tests.alerts.monitoring import MINUTE, Monitoring
from tests.integration.conftest import free_ports
from tests.unit.jobs.runtime.test_surroundings import certificate
from tests.waiting import until

PATIENCE = 300.0
REPORT = Path("build/alerts.json")
SUPERVISOR = """
import threading, signal
from jobs.runtime.settings import load_settings
from jobs.runtime.supervisor import supervise
stop = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: stop.set())
supervise(("rules",), load_settings(), stop)
"""

pytestmark = pytest.mark.skipif(
    not (shutil.which("prometheus") and shutil.which("prometheus-alertmanager") and os.geteuid() == 0),
    reason="Debian's packages prometheus and prometheus-alertmanager, and root for a small disk, are needed",
)


class Chain:
    """The jobs `rules` (supervised) and `indexer` over servers of their own, with a small disk, and what feeds them."""

    def __init__(self, folder: Path) -> None:
        port = free_ports(12)
        self.folder, self.disk = folder, folder / "disk"
        self.servers = LocalServers(
            folder / "servers", kafka_port=port, elasticsearch_port=port + 2, jars=default_jars()
        )
        self.ports = {"rules": port + 4, "indexer": port + 5}
        self.monitoring_port = port + 6
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(certificate(days=10_000))
        self.processes: dict[str, subprocess.Popen] = {}
        self.feeds = {0, 1, 2, 3}  # partitions that get watermarks
        self._over = threading.Event()

    def begin(self, generation: str) -> None:
        """Topics of a generation, a feed into its `events`, and the jobs."""
        self.topics = JOBS.topics_in(load_topics(), generation)
        self.generation, self.events = generation, self.topics["events"].name
        self.kafka = admin.connect(self.servers.bootstrap)
        admin.apply(self.kafka, self.topics)
        self.log = Log(self.servers.bootstrap)
        self.producer = Producer({"bootstrap.servers": self.servers.bootstrap})

    def start(self, name: str) -> None:
        command = ["-c", SUPERVISOR] if name == "rules" else ["-m", "ops.cli", "run", name]
        own = {
            "KAPPA_KAFKA_BOOTSTRAP": self.servers.bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.servers.elasticsearch_url,
            "KAPPA_KAFKA_SSL_CA": str(self.certificate),  # not used: the broker is in plain text
            "KAPPA_GENERATION": self.generation,
            "KAPPA_HOME": str(self.disk),
            "KAPPA_METRICS_PORT": str(self.ports[name]),
            "KAPPA_DRIVER_MEMORY": "512m",
        }
        with (self.folder / f"{name}.log").open("ab") as output:
            self.processes[name] = subprocess.Popen(
                [sys.executable, *command], env=os.environ | own, stdout=output, stderr=output, start_new_session=True
            )

    def feed(self) -> None:
        """A watermark a second into each partition of `events` that is fed."""
        while not self._over.wait(1):
            now = int(time.time() * 1000) - 1000
            for partition in self.feeds:
                self.send(watermark_value(now * 1_000_000), partition, now)

    def send(self, value: bytes, partition: int, timestamp: int, key: bytes | None = None) -> None:
        self.producer.produce(self.events, value, key, partition=partition, timestamp=timestamp)
        self.producer.flush(30)

    def below(self, name: str) -> list[psutil.Process]:
        return psutil.Process(self.processes[name].pid).children(recursive=True)

    def workers(self) -> list[psutil.Process]:
        return [one for one in self.below("rules") if "pyspark.daemon" in " ".join(one.cmdline())]

    @contextmanager
    def stopped(self, processes: list[psutil.Process]):
        assert processes
        for one in processes:
            one.suspend()
        try:
            yield
        finally:
            for one in processes:
                one.resume()

    def lag(self) -> int:
        ends = self.log.ends([self.events])
        return sum(ends.values()) - sum(self.log.committed(f"kappa.{self.generation}.rules", ends).values())

    def end(self) -> None:
        self._over.set()
        for process in self.processes.values():
            process.terminate()
        for process in self.processes.values():
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture
def chain(tmp_path):
    chain = Chain(tmp_path)
    chain.disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1g", "tmpfs", chain.disk], check=True)
    try:
        chain.servers.up()
        yield chain
    finally:
        chain.end()
        chain.servers.down()
        subprocess.run(["umount", "-l", chain.disk], check=True)


def test_each_fault_is_heard_and_its_end_too(chain: Chain, tmp_path):
    chain.begin(f"alert-{uuid.uuid4().hex[:6]}")
    for name in chain.ports:
        chain.start(name)
    threading.Thread(target=chain.feed, daemon=True).start()
    until(lambda: chain.lag() < 20 and chain.log.ends([chain.events]), PATIENCE, "rules reads what is fed")
    with Monitoring(tmp_path, chain.monitoring_port, chain.ports) as heard:
        report = Report(heard)
        time.sleep(12 * MINUTE)  # as long as the longest `for` of what must not fire
        absent = {"KappaJobAbsent"}  # of enrichment, statistics and detector, which don't run here
        assert heard.firing() <= absent, heard.firing()

        hanging = report.fault("a Python worker is stopped", "KappaNoProgress", "KappaStaleBatches", "KappaLagGrows")
        with hanging, chain.stopped(chain.workers()):
            report.fired()

        with report.fault("a partition stops", "KappaWatermarkStands", "KappaEventTimeBehind"):
            chain.feeds.discard(2)
            report.fired()
            chain.feeds.add(2)

        with report.fault("records are near their retention", "KappaDataWillBeLost"):
            old = int(time.time() * 1000) - int(6.9 * 86_400_000)
            with chain.stopped(chain.workers()):
                chain.send(watermark_value(old * 1_000_000), 0, old)
                report.fired()

        with report.fault("somebody writes garbage", "KappaFoldRejects"):
            chain.send(b"no JSON", 1, int(time.time() * 1000), b"vm-1")
            report.fired()

        with report.fault("the disk fills", "KappaDiskFull"):
            free = shutil.disk_usage(chain.disk).free
            filling = chain.disk / "filling"
            filling.write_bytes(b"\0" * (free - 60 * 2**20))
            report.fired()
            filling.unlink()

        with report.fault("a certificate expires", "KappaCertificateExpires"):
            chain.certificate.write_bytes(certificate(days=-1_000))
            report.fired()
            chain.certificate.write_bytes(certificate(days=10_000))

        with report.fault("Elasticsearch hangs", "KappaElasticsearchWaits", "KappaIndicesNotAged"):
            (server,) = [one for one in psutil.process_iter() if _is_elasticsearch(one, chain)]
            with chain.stopped([server]):
                _reject_something(chain)
                report.fired()

        with report.fault("records are deleted ahead of a reader", "KappaApplicationRefused"):
            with chain.stopped([psutil.Process(chain.processes["rules"].pid), *chain.below("rules")]):
                until(lambda: chain.lag() > 40, PATIENCE, "records wait")
                place = (chain.events, 0)
                offset = chain.log.committed(f"kappa.{chain.generation}.rules", [place])[place] + 5
                for deleted in chain.kafka.delete_records([TopicPartition(*place, offset)]).values():
                    deleted.result()
            report.fired()

            with report.fault("nobody runs a job", "KappaJobDown", "KappaJobAbsent", job="rules"):
                chain.processes["rules"].terminate()
                report.fired()
                chain.begin(f"alert-{uuid.uuid4().hex[:6]}")
                chain.start("rules")
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps(report.rows, indent=1))


def _is_elasticsearch(process: psutil.Process, chain: Chain) -> bool:
    try:
        line = " ".join(process.cmdline())
    except psutil.Error:
        return False
    return str(chain.servers.home) in line and "org.elasticsearch.server" in line


def _reject_something(chain: Chain) -> None:
    letter = {
        "id": "a-1", "stage": "enrichment", "code": "not_json",
        "source": {"topic": "t", "partition": 0, "offset": 1, "timestamp_unix_milli": int(time.time() * 1000)},
    }  # fmt: skip
    chain.producer.produce(chain.topics["events.rejected"].name, json.dumps(letter).encode(), b"t")
    chain.producer.flush(30)


class Report:
    """What was heard of each fault, and after how many seconds."""

    def __init__(self, heard: Monitoring) -> None:
        self.heard, self.rows = heard, []
        self._open: list[tuple[str, tuple[str, ...], dict[str, str], float]] = []

    @contextmanager
    def fault(self, what: str, *alerts: str, **labels: str):
        """The fault that the block makes and mends: in it `fired` waits for its alerts; at its end they must end."""
        self._open.append((what, alerts, labels, time.time()))
        yield
        what, alerts, labels, _ = self._open.pop()
        mended = time.time()
        for alert in alerts:
            own = labels if alert == "KappaJobAbsent" else {}
            self.heard.wait_for(PATIENCE, alert, "resolved", **own)
            (row,) = [row for row in self.rows if row["name"] == alert and row["fault"] == what]
            row |= {"ended": True, "ended_after_s": round(time.time() - mended, 1)}

    def fired(self) -> None:
        """Wait until each alert of the innermost fault is heard."""
        what, alerts, labels, began = self._open[-1]
        for alert in alerts:
            self.heard.wait_for(PATIENCE, alert, **(labels if alert == "KappaJobAbsent" else {}))
            self.rows.append(
                {"name": alert, "fault": what, "fired_after_s": round(time.time() - began, 1), "ended": False}
            )
