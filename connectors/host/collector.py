"""Sends this machine's metrics, at an interval, and its log lines, as they come, to Kafka as OTLP JSON."""

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event

import orjson
import psutil

from connectors import otlp
from connectors.host.sampler import Sampler
from connectors.host.tail import FileTail, Journal
from connectors.kafka.producer import Sender
from infra.errors import UserError

METRICS_TOPIC = "telemetry.otlp.metrics"
LOGS_TOPIC = "telemetry.otlp.logs"
SCOPE = "kappa/connectors/host"
LOG_INTERVAL_S = 1.0


@dataclass(frozen=True, slots=True)
class Settings:
    """What to send. `interval_s` is the time between two samples of the metrics."""

    machine: str = platform.node()
    interval_s: float = 5.0
    files: Sequence[Path] = ()
    journal: bool = True
    top: int = 5
    topic_prefix: str = ""

    def check(self) -> None:
        """Check the values.

        Raises:
            UserError: names the field, its value and the fix.
        """
        if not self.machine.strip():
            raise UserError(f"machine {self.machine!r}: give a name")
        if self.interval_s < 0.1:
            raise UserError(f"interval {self.interval_s:g}s: give at least 100ms")
        if self.top < 0:
            raise UserError(f"top {self.top}: give 0 or more")
        for path in self.files:
            if not path.is_file():
                raise UserError(f"file {str(path)!r}: is no file that can be followed; give a log file that is there")

    def topics(self) -> list[str]:
        """The topics that the collector writes."""
        return [self.topic_prefix + METRICS_TOPIC, self.topic_prefix + LOGS_TOPIC]


@dataclass(slots=True)
class Counts:
    """The numbers of data points and log lines sent."""

    points: int = 0
    lines: int = 0


class Collector:
    """Sends the telemetry of this machine until it is stopped."""

    def __init__(self, settings: Settings, sender: Sender) -> None:
        """Opens the log files and the journal.

        Raises:
            UserError: the settings make no sense.
        """
        settings.check()
        self.settings = settings
        self.counts = Counts()
        self._sender = sender
        self._resource = {"host.name": settings.machine, "os.type": platform.system().lower()}
        self._boot_unix_nano = int(psutil.boot_time()) * 1_000_000_000
        self._sampler = Sampler(settings.top)
        journal = Journal.start() if settings.journal else None
        self._logs: list[FileTail | Journal] = [FileTail(path) for path in settings.files] + (
            [journal] if journal else []
        )

    def run(self, stop: Event) -> None:
        """Send metrics and log lines until `stop` is set; then send the last lines and close the files."""
        due = time.monotonic() + self.settings.interval_s  # CPU shares need a first interval
        try:
            while not stop.is_set():
                if time.monotonic() >= due:
                    self.send_metrics()
                    due += self.settings.interval_s
                self.send_logs()
                stop.wait(max(0.0, min(LOG_INTERVAL_S, due - time.monotonic())))
            self.send_logs()
            self._sender.flush()
        finally:
            for source in self._logs:
                source.close()

    def send_metrics(self) -> None:
        """Send a sample of all metrics as one record."""
        points, now = self._sampler.sample(), time.time_ns()
        request = otlp.metrics(self._resource, SCOPE, points, self._boot_unix_nano, now)
        self._send(METRICS_TOPIC, orjson.dumps(request), now)
        self.counts.points += len(points)

    def send_logs(self) -> None:
        """Send the new lines of all files and the journal as one record; no record if there are none."""
        lines = [line for source in self._logs for line in source.read()]
        if lines:
            self._send(LOGS_TOPIC, orjson.dumps(otlp.logs(self._resource, SCOPE, lines)), time.time_ns())
            self.counts.lines += len(lines)
        self._sender.poll()

    def _send(self, topic: str, value: bytes, now: int) -> None:
        self._sender.send(self.settings.topic_prefix + topic, self.settings.machine.encode(), value, now // 1_000_000)
