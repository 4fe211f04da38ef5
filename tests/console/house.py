"""The running chain with its console: servers, jobs as processes, a simulated cloud with faults, one folder for all."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import orjson
import psutil
from confluent_kafka import Producer

from connectors.kafka import admin
from connectors.kafka.reader import read_records
from connectors.sinks.elasticsearch import connect
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.runtime.settings import Settings
from ops.job_addresses import JobAddresses
from ops.launcher import topics_of
from ops.replay.run import running
from ops.sql.examples import EXAMPLES
from ops.verify.observer import Observer
from tests.chaos.processes import Job
from tests.waiting import until

# vm-17 and hv-02 stay busy: after a quarter of an hour the detector takes that for normal. Two machines stay silent.
FAULTS = (
    "state_change:vm-09@+80s",
    "malformed:vm-03@+80s/20s",
    "late:vm-05@+90s/20s",
    "wrong_clock:vm-06@+90s/20s",
    "cpu_hog:hv-02@+100s/2h",
    "new_vm:vm-new@+100s",
    "log_burst:vm-12@+110s/30s",
    "silence:vm-20@+120s/2h",
    "silence:vm-21@+120s/2h",
    "cpu_hog:vm-17@+130s/2h",
)
HOSTILE = "<img src=/static/none.png onerror=document.title='broken'>"
HOSTILE_AFTER, HOSTILE_SECONDS = 100, 60
START_SECONDS = 300.0
FOUND_SECONDS = 1200.0  # two cores that do something else, too
SITES = 2  # of the examples: how each site's processor load goes
BUSY_SERIES = "system.cpu.utilization{state=user}"
UNIT = "u" * 70  # a longer unit than enrichment takes, until it is told to


class House:
    """Everything that runs below one home."""

    def __init__(self, home: Path, port: int) -> None:
        self.home, self.port = home, port
        self.servers = LocalServers(home, kafka_port=port, elasticsearch_port=port + 2, jars=default_jars())
        self.settings = Settings(
            home=home,
            kafka_bootstrap=self.servers.bootstrap,
            elasticsearch_url=self.servers.elasticsearch_url,
            metrics_port=port + 10,
        )
        self.topics = topics_of(self.settings)
        self.jobs = {
            name: self._job(name, "run", name, KAPPA_METRICS_PORT=str(port + 10 + number))
            for number, name in enumerate(JobAddresses(self.settings).applications)
        }
        self.truth = home / "truth"
        faults = [part for fault in FAULTS for part in ("--fault", fault)]
        self.cloud = self._job("cloud", "simulate", "--json", "--truth", str(self.truth), *faults)
        self.console = self._console("console", port + 4, "2")
        # Another one that reads everything anew for each request, to be timed.
        self.unshared = self._console("unshared", port + 5, "0")
        self._over = threading.Event()

    def _job(self, name: str, *command: str, **environment: str) -> Job:
        return Job(name, command, self.environment | environment, self.home / f"log/{name}.log")

    def _console(self, name: str, port: int, fresh: str) -> Job:
        return self._job(name, "console", "--port", str(port), KAPPA_CONSOLE_FRESH_SECONDS=fresh)

    @property
    def environment(self) -> Mapping[str, str]:
        """The settings of everything here."""
        return {
            "KAPPA_HOME": str(self.home),
            "KAPPA_KAFKA_BOOTSTRAP": self.settings.kafka_bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.settings.elasticsearch_url,
            "KAPPA_METRICS_PORT": str(self.settings.metrics_port),
            "KAPPA_ARCHIVE_TRIGGER_SECONDS": "15",
            "KAPPA_DRIVER_MEMORY": "768m",
            "KAPPA_JARS": str(default_jars()),
        }

    @property
    def address(self) -> str:
        """Of the console."""
        return f"http://127.0.0.1:{self.port + 4}"

    @property
    def unshared_address(self) -> str:
        """Of the console that shares no answers."""
        return f"http://127.0.0.1:{self.port + 5}"

    def up(self) -> None:
        """Start everything; returns when every fault has its answer."""
        self.servers.up()
        admin.apply(admin.connect(self.settings.kafka_bootstrap), self.topics)
        for job in (*self.jobs.values(), self.console):
            job.start()
        until(self.console_answers, START_SECONDS, "the console answers")
        self.cloud.start()
        threading.Thread(target=self._speak_hostile, daemon=True).start()
        observer = Observer(self.settings, self.truth, self.elasticsearch())
        until((self.truth / "plan.json").exists, START_SECONDS, "the cloud sends")
        planned = observer.truth.planned()

        def unanswered() -> list[str]:
            rows = observer.rows()
            return [row.kind for row in rows if not row.found] if len(rows) == planned else ["not all have begun"]

        until(lambda: self.check() or not unanswered(), FOUND_SECONDS, "every fault has its answer", pause=5)

    def check(self) -> None:
        """Fails if a process has ended."""
        for job in (*self.jobs.values(), self.cloud, self.console):
            assert job.code is None, f"{job.name} has ended: {job.output()[-1000:]}"

    def down(self) -> None:
        """End everything that was started here, what the console has started too."""
        self._over.set()
        for job in (self.cloud, self.console, self.unshared, *self.jobs.values()):
            if job.process is not None:
                job.stop()
        for process in self._descendants():
            process.kill()
        self.servers.down()

    def _descendants(self) -> list[psutil.Process]:
        """Processes of this home that still live: a replay's jobs have no parent here."""
        found = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("KAPPA_HOME") == str(self.home):
                    found.append(process)
            except (psutil.Error, OSError):
                continue
        return found

    def elasticsearch(self) -> Any:
        """A client of it."""
        return connect(self.settings.elasticsearch_url, self.settings.elasticsearch_identity())

    def console_answers(self) -> bool:
        """Whether somebody listens where the console does."""
        return self.console.said("console: http") and self.console.code is None

    # What is true

    def records(self, topic: str) -> list[dict[str, Any]]:
        """The records of a topic of the map."""
        return [record for _, record in read_records(self.settings.kafka_bootstrap, self.topics[topic].name)]

    def documents(self, kind: str, **query: Any) -> list[dict[str, Any]]:
        """The documents of a kind that match, with their ids as `_id`."""
        client, index = self.elasticsearch(), f"kappa-{kind}"
        client.indices.refresh(index=index)
        hits = client.search(index=index, size=1_000, **query)["hits"]["hits"]
        return [hit["_source"] | {"_id": hit["_id"]} for hit in hits]

    def window(self, machine: str, series: str, start: int, length: int) -> tuple[float, float, float] | None:
        """Mean, least and greatest value that was sent from `start` on for `length` ms; None if nothing was."""
        parts = [
            line["series"][series]
            for line in self.lines("windows")
            if line["machine"] == machine and series in line["series"]
            if start <= line["start_unix_nano"] // 1_000_000 < start + length
        ]
        return _joined(parts) if parts else None

    def lines(self, name: str) -> Iterator[dict[str, Any]]:
        """Of a file of the truth, what is whole."""
        whole, _, _ = (self.truth / f"{name}.jsonl").read_bytes().rpartition(b"\n")
        return map(orjson.loads, whole.splitlines())

    def places(self) -> dict[str, str]:
        """By the name of a picture the path of a view, at something that is there."""
        busy = self.documents("novelties", query={"term": {"machine": "vm-17"}}, sort=[{"score": "desc"}])[0]
        incident = max(self.documents("incidents"), key=lambda one: one["machines"])
        letter = self.documents("rejected", query={"term": {"code": "not_json"}})[0]
        return {
            "chain": "/chain",
            "fleet": "/fleet?span=15m",
            "fleet-hypervisors": "/fleet?span=15m&by=hypervisor",
            "machine": "/fleet/vm-17?span=15m",
            "novelty": f"/fleet/vm-17?novelty={busy['_id']}",
            "series": f"/fleet/vm-17?span=15m&series={quote(BUSY_SERIES)}",
            "logs": "/fleet/vm-12?span=15m",
            "hostile": f"/fleet/{quote(HOSTILE, safe='')}?span=15m",
            "incidents": "/incidents",
            "incident": f"/incidents/{quote(incident['_id'])}",
            "control": "/control",
            "suppress": "/control/suppress?machine=vm-17",
            "rejected": "/rejected",
            "letter": f"/rejected/{quote(letter['_id'])}",
            "ask": "/ask",
            "answer": f"/ask?{urlencode({'sql': EXAMPLES[SITES].sql})}",
            "generations": "/generations",
            "savepoints": "/savepoints",
            "who": "/who",
            "not-found": "/none",
        }

    def end_replay(self, name: str) -> None:
        """End the processes of a replay that the console has started."""
        own = self.settings.model_copy(update={"generation": name})
        if (pid := running(own)) is not None:
            os.kill(pid, signal.SIGTERM)
        until(lambda: running(own) is None, START_SECONDS, f"the replay {name} ends")

    # What is sent beside the cloud

    def send_line(self, **event: Any) -> None:
        """An event into `telemetry.lines`, of now."""
        producer = Producer({"bootstrap.servers": self.settings.kafka_bootstrap})
        producer.produce("telemetry.lines", orjson.dumps({"time_unix_nano": time.time_ns(), **event}))
        assert producer.flush(30) == 0

    def _speak_hostile(self) -> None:
        """A machine whose name is markup sends for a minute, then it is silent; its labels are too long."""
        self._over.wait(HOSTILE_AFTER)
        for number in range(HOSTILE_SECONDS):
            if self._over.wait(1):
                return
            label = {"label": "x" * (4_000 if number % 10 == 0 else 200)}
            self.send_line(machine=HOSTILE, name="<b>load</b>", value=1.0 * number, unit="<i>", attributes=label)


def _joined(parts: list[dict[str, float]]) -> tuple[float, float, float]:
    count = sum(one["count"] for one in parts)
    mean = sum(one["sum"] for one in parts) / count
    return mean, min(one["min"] for one in parts), max(one["max"] for one in parts)


def memory_mb(job: Job) -> float:
    """What a process has of this machine's memory."""
    assert job.process is not None
    return psutil.Process(job.process.pid).memory_info().rss / 1e6
