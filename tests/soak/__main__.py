"""`make test-soak`: the whole chain for hours while everything ages, and something is killed every five minutes.

Thirty days of event time pass within the hours: the topics have the senders' clocks. Indices, tables, topics and
savepoints are kept for three of these days (topics: for some megabytes), so each rolls over many times. In the second
half neither disk nor memory nor documents may grow: what is there at its end is compared with what was there when the
same was killed the time before.
"""

import json
import os
import random
import shutil
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
import yaml
from confluent_kafka import KafkaException
from elasticsearch import ApiError, TransportError
from rich.progress import Progress

from connectors.kafka.producer import CollectorProducer
from connectors.sinks.elasticsearch import connect
from infra.contract.indices import DEFAULT_INDICES
from infra.contract.topics import DEFAULT_MAP
from infra.errors import UserError
from jobs.indexer.index_names import IndexName
from jobs.runtime.settings import Settings
from tests.alerts.monitoring import Monitoring
from tests.chaos.chain import SETTLE_SECONDS, Chain
from tests.chaos.processes import Job
from tests.integration.conftest import free_ports
from tests.soak.fleet import DAY, MINUTE, TOPIC, Fleet
from tests.soak.growth import Sample, checkpoint_bytes, disk_bytes, growth, is_warm, memory_bytes
from tests.soak.ledger import TOPICS, Ledger, Reader
from tests.waiting import until

KEPT_DAYS = 3
TRAIL = 15  # minutes after the end, which let the last windows close
LEAST_ROLLS = 10
LARGEST_GROWTH = 0.02
MEGABYTE = 2**20
ALERT, ALERT_SECONDS = "KappaJobDown", 90.0
# Few enough that a megabyte, the least that a segment may have, is soon full: of `events` in six minutes. Where records
# come in transactions a segment has no other end: these have markers, of the broker's clock.
PARTITIONS = 2
# By size, as brokers count a record's age by their own clock; and their own topics, which are compacted.
BROKER = {
    "log.retention.bytes": 6 * MEGABYTE,  # of statistics three days, which are more than ten minutes
    "log.segment.bytes": MEGABYTE,
    "log.roll.ms": 86_400_000,  # by the records' clock
    "log.retention.check.interval.ms": 10_000,
    "offsets.topic.segment.bytes": MEGABYTE,
    "transaction.state.log.segment.bytes": MEGABYTE,
}
SPARK = {
    "spark.databricks.delta.properties.defaults.deletedFileRetentionDuration": "interval 5 minutes",
    "spark.databricks.delta.properties.defaults.logRetentionDuration": "interval 5 minutes",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    "spark.cleaner.periodicGC.interval": "1min",  # as short beside the default as an hour here is beside its days
}
# What the chain of the chaos tests, whose jobs live for minutes, has otherwise; and what the image sets.
OF_JOBS = {
    "JAVA_TOOL_OPTIONS": "",
    "MALLOC_ARENA_MAX": "2",
    "KAPPA_ARCHIVE_TRIGGER_SECONDS": str(Settings.model_fields["archive_trigger_seconds"].default),
    # Not the shipped one, as half an hour of event time passes meanwhile: so a batch is done before the next is due,
    # and a checkpoint, which holds the batches of some minutes, has always as many.
    "KAPPA_TRIGGER_SECONDS": "5",
}
MAINTENANCE = {
    "maintain": ("archive", "maintain", "--every", "5m"),
    "savepoints": ("savepoint", "create", "soak", "--all", "--keep", "3", "--every", "5m"),
}
# Debian's packages; without them no alerts are heard.
CAN_MONITOR = bool(shutil.which("prometheus") and shutil.which("prometheus-alertmanager"))
app = typer.Typer(add_completion=False)


def declare(folder: Path) -> dict[str, str]:
    """Write the files by which everything ages in days of event time; returns the settings, as variables."""
    topics = yaml.safe_load(DEFAULT_MAP.read_text())
    topics["telemetry"]["timestamp"] = "CreateTime"
    topics["defaults"]["partitions"] = PARTITIONS
    for declared in (topics["defaults"], *topics["topics"].values()):
        changes = {"retention": "3650d", "archive_retention": f"{KEPT_DAYS}d", "timestamp": "CreateTime"}
        declared.update({name: value for name, value in changes.items() if name in declared})
    indices = yaml.safe_load(DEFAULT_INDICES.read_text())
    indices["defaults"] |= {"period": "1d", "retention": f"{KEPT_DAYS}d"}
    indices["kinds"] = {kind: {} for kind in indices["kinds"]}
    windows = {"windows": [{"kind": "tumbling", "size": "1m"}, {"kind": "tumbling", "size": "10m"}], "state_ttl": "1d"}
    folder.mkdir(parents=True)
    for name, content in {"topics": topics, "indices": indices, "windows": windows}.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
    return {
        "KAPPA_TOPICS_FILE": str(folder / "topics.yaml"),
        "KAPPA_INDEXER_INDICES": str(folder / "indices.yaml"),
        "KAPPA_STATISTICS_WINDOWS": str(folder / "windows.yaml"),
        "KAPPA_SPARK_CONF": json.dumps(SPARK),
        "KAPPA_DRIVER_MEMORY": "512m",
        "KAPPA_DETECTOR_WINDOW_SECONDS": "60",
        "KAPPA_DETECTOR_GONE_WINDOWS": "720",
        "KAPPA_DETECTOR_STATE_TTL_WINDOWS": str(2 * DAY),
        "KAPPA_DETECTOR_SEEN_BEFORE_WINDOWS": str(2 * DAY),
    }


class Soak:
    """The chain, what feeds it, what kills it, and what is seen of it."""

    def __init__(self, home: Path, hours: float, days: int, kill_seconds: float, seed: int) -> None:
        os.environ.update(declare(home / "declared"))
        self.home, self.hours, self.minutes = home / "kappa", hours, days * DAY
        self.kill_seconds = kill_seconds
        self.fleet = Fleet((time.time_ns() // (DAY * MINUTE) - days - 1) * DAY * MINUTE)
        self.ledger = Ledger(self.fleet)
        port = free_ports(40)
        self.chain = Chain(self.home, port)
        (broker,) = self.chain.servers.kafka
        broker.overrides = {**broker.overrides, **BROKER}
        for name, command in MAINTENANCE.items():
            self.chain.jobs[name] = Job(name, command, self.chain.jobs["archive"].environment, home / f"{name}.log")
        ports = {name: port + 20 + number for number, name in enumerate(self.chain.jobs)}
        for name, job in self.chain.jobs.items():
            job.extra = {"KAPPA_METRICS_PORT": str(ports[name]), **OF_JOBS}
        (home / "monitoring").mkdir()
        self.monitoring = Monitoring(home / "monitoring", port + 35, ports)
        self.samples: list[Sample] = []
        self.checkpoints: list[dict[str, int]] = []  # bytes by query, at each sample
        self.kills: list[tuple[float, str]] = []  # when, by the wall clock, and what
        self.held: list[tuple[float, str]] = []  # those of them that an alert was waited for
        self.rolled: dict[str, set[str]] = {"elasticsearch": set(), "kafka": set(), "delta": set()}
        self._random = random.Random(seed)
        self.targets = [*self.chain.jobs, "kafka", "elasticsearch"]  # killed in turn
        self._random.shuffle(self.targets)
        self._over = threading.Event()
        self._failures: list[BaseException] = []

    @contextmanager
    def running(self) -> Iterator[None]:
        """Servers, jobs and the reader; at the end everything is gone."""
        try:
            self.chain.up()
            counts = {self.chain.topics[name].name: self.chain.topics[name].partitions for name in TOPICS}
            self.reader = Reader(self.chain.settings.kafka_bootstrap, counts, self.ledger)
            with self.monitoring if CAN_MONITOR else nullcontext():
                yield
        finally:
            self._over.set()
            if hasattr(self, "reader"):
                self.reader.close()
            self.chain.down()

    def run(self, sample_seconds: float) -> None:
        """Feed all minutes in the hours, with kills and samples beside it; returns when everything has come through."""
        beside = [
            threading.Thread(target=self._repeated, args=(*what,), daemon=True)
            for what in ((self._kill, self.kill_seconds), (self._sample, sample_seconds))
        ]
        for thread in beside:
            thread.start()
        self._feed()
        self._over.set()
        for thread in beside:
            thread.join(300)
        self._settle()

    def _feed(self) -> None:
        """Each minute at its time by the wall clock, delivered before the next, so that partitions stay in step."""
        producer, begun = CollectorProducer(self.chain.settings.kafka_bootstrap, {TOPIC}), time.monotonic()
        pace = self.hours * 3600 / self.minutes  # seconds a minute of event time
        with Progress() as shown:
            task = shown.add_task("days of event time", total=self.minutes / DAY)
            for minute in range(self.minutes + TRAIL):
                self.check()
                if (early := begun + minute * pace - time.monotonic()) > 0:
                    time.sleep(early)
                for key, value in self.fleet.records(minute):
                    producer.send(TOPIC, key, value, (self.fleet.start + minute * MINUTE) // 10**6)
                producer.flush()
                shown.update(task, completed=minute / DAY)

    def check(self) -> None:
        """Raises what has gone wrong beside this thread."""
        self.chain.check()
        if self._failures:
            raise self._failures[0]
        if self.reader.failure:
            raise RuntimeError(self.reader.failure)

    def _repeated(self, act: Any, seconds: float) -> None:
        """At each multiple of so many seconds."""
        begun = time.monotonic()
        while not self._over.wait(seconds - (time.monotonic() - begun) % seconds):
            try:
                act()
            except (KafkaException, UserError, ApiError, TransportError):
                continue  # a server was just killed
            except BaseException as error:
                self._failures.append(error)
                return

    def _kill(self) -> None:
        """kill -9 of a server, which comes back, or of a job; half of them stay down until somebody hears of it."""
        turn = len(self.kills) % len(self.targets)
        name = self.targets[turn]
        self.kills.append((time.time(), name))
        servers = {"kafka": self.chain.servers.kafka[0], "elasticsearch": self.chain.servers.elasticsearch}
        if server := servers.get(name):
            server.kill()
            time.sleep(self._random.uniform(0, 10))
            server.spawn()
        elif CAN_MONITOR and turn % 2:
            self._hold(name)
        else:
            self.chain.jobs[name].kill()

    def _hold(self, name: str) -> None:
        self.held.append(self.kills[-1])
        self.chain.hold(name)
        try:
            self.chain.jobs[name].kill()
            with suppress(TimeoutError):  # the report says that nobody heard of it
                self.monitoring.wait_for(ALERT_SECONDS, ALERT, instance=name)
        finally:
            self.chain.release(name)

    def _sample(self) -> None:
        leaders = {name: job.process.pid for name, job in self.chain.jobs.items() if job.process}
        indices = self._indices()
        documents: Counter[str] = Counter()
        for index, count in indices.items():
            documents[index.split("-")[1]] += count
        memory = {name: size for name, one in leaders.items() if is_warm(one) and (size := memory_bytes(one))}
        self.samples.append(Sample(time.monotonic(), disk_bytes(self.home), memory, dict(documents)))
        self.checkpoints.append(checkpoint_bytes(self.home))
        self._note_rolls(list(indices))

    def _indices(self) -> dict[str, int]:
        client = connect(self.chain.settings.elasticsearch_url, self.chain.settings.elasticsearch_identity())
        rows = client.options(request_timeout=30).cat.indices(index="kappa-*", format="json", h="index,docs.count")
        return {row["index"]: int(row["docs.count"] or 0) for row in rows}

    def _note_rolls(self, indices: list[str]) -> None:
        days = {str(one.start) for index in indices if "statistics" in index and (one := IndexName.parse(index))}
        self.rolled["elasticsearch"] |= days
        segments = self.home.glob(f"kafka-1/**/{self.chain.topics['events'].name}-0/*.log")
        self.rolled["kafka"] |= {one.name for one in segments}
        self.rolled["delta"] |= {one.name for one in (self.home / "delta").glob("*/log/**/date=*")}

    def _settle(self) -> None:
        end = self.fleet.start + self.minutes * MINUTE

        def is_through() -> bool:
            self.check()
            try:
                return self.ledger.watermark >= end and not self.chain.lag(self.chain.ends())
            except (KafkaException, UserError):
                return False

        until(is_through, SETTLE_SECONDS, "the chain is not through", 2.0)

    def report(self) -> dict[str, Any]:
        """What `build/soak.json` says."""
        compared = self.ledger.compared(self.minutes)
        period = self.kill_seconds * len(self.targets)
        grown = {name: growth(self.samples, name, period) for name in ("disk_bytes", "memory_bytes", "documents")}
        rolls = {name: len(seen) - 1 for name, seen in self.rolled.items()}
        right = not (compared["lost"] or compared["duplicated"] or compared["wrong"])
        alerts = self._alerts()
        heard = {(one["at"], one["killed"]) for one in alerts if one["name"] == ALERT and one["ended"]}
        killed = Counter(name for _, name in self.kills)
        started = {name: len(job.sessions) - 1 for name, job in self.chain.jobs.items()}
        by_job = {name: [one.memory_bytes.get(name) for one in self.samples] for name in self.chain.jobs}
        return {
            "passed": right
            and heard >= set(self.held)
            and min(rolls.values()) >= LEAST_ROLLS
            and all(value is not None and value <= LARGEST_GROWTH for value in grown.values()),
            "hours": self.hours,
            "event_days": self.minutes / DAY,
            "kills": len(self.kills),
            "killed": dict(killed),
            "started_without_a_kill": {name: starts - killed[name] for name, starts in started.items()},
            **compared,
            "rolls": rolls,
            "alerts": alerts,
            "growth": {name: value and round(value, 4) for name, value in grown.items()},
            "sampled_after_s": [round(one.seconds - self.samples[0].seconds, 1) for one in self.samples],
            "disk_bytes": [sum(one.disk_bytes.values()) for one in self.samples],
            "disk_by_folder": [one.disk_bytes for one in self.samples],
            "checkpoint_bytes": self.checkpoints,
            "memory_bytes": by_job,
            "documents": [sum(one.documents.values()) for one in self.samples],
        }

    def _alerts(self) -> list[dict[str, Any]]:
        """Those that were heard of a job that was killed: how long after the kill, and whether they ended."""
        found = []
        for at, (killed, name) in enumerate(self.kills):
            until_next = self.kills[at + 1][0] if at + 1 < len(self.kills) else float("inf")
            heard = [
                one
                for one in self.monitoring.heard
                if one["labels"].get("instance") == name and killed <= one["heard"] < until_next
            ]
            for alert in sorted({one["labels"]["alertname"] for one in heard if one["status"] == "firing"}):
                own = [one for one in heard if one["labels"]["alertname"] == alert]
                after = next(one["heard"] for one in own if one["status"] == "firing") - killed
                ended = own[-1]["status"] == "resolved"
                found.append(
                    {"name": alert, "killed": name, "at": killed, "fired_after_s": round(after, 1), "ended": ended}
                )
        return found


def keep_logs(home: Path, target: Path) -> None:
    """What the jobs have logged, beside the report: why one of them has ended by itself."""
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for log in [*home.glob("*.log"), *home.glob("kappa/log/*.log")]:
        shutil.copy(log, target)


@app.command()
def main(
    hours: Annotated[float, typer.Option(help="By the wall clock.")] = 2.0,
    days: Annotated[int, typer.Option(help="Of event time.")] = 30,
    kill_seconds: Annotated[float, typer.Option(help="Between two kills.")] = 300.0,
    sample_seconds: Annotated[float, typer.Option(help="Between two looks at disk, memory and documents.")] = 60.0,
    seed: Annotated[int, typer.Option(help="Of the kills.")] = 1,
    report: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/soak.json"),
) -> None:
    """Run; exit with 1 if something was lost, doubled or wrong, or grows.

    Example: python -m tests.soak --hours 0.25 --days 4
    """
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        home = Path(folder)
        soak = Soak(home, hours, days, kill_seconds, seed)
        with soak.running():
            try:
                soak.run(sample_seconds)
            finally:
                found = soak.report()
                report.parent.mkdir(parents=True, exist_ok=True)
                report.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))
                keep_logs(home, report.with_suffix(".logs"))
    series = ("sampled_after_s", "disk_bytes", "disk_by_folder", "checkpoint_bytes", "memory_bytes", "documents")
    typer.echo(json.dumps({name: value for name, value in found.items() if name not in series}, indent=2))
    raise SystemExit(0 if found["passed"] else 1)


if __name__ == "__main__":
    app()
