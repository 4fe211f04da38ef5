"""What a command does once, or again and again as a service: maintenance that a deployment without cron runs."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence

import structlog
from prometheus_client import Gauge

from connectors.shutdown import stop_on_signals
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.settings import load_settings
from ops.units import seconds_of

DONE = Gauge("kappa_maintenance_done_timestamp_seconds", "When a round of this process's maintenance last succeeded")
POLL_SECONDS = 0.2
LATE = 3  # intervals without success, after which it isn't healthy

log = structlog.get_logger()


def repeat(every: str | None, act: Callable[[], None]) -> None:
    """Act once; or each `every`, as 1d, until SIGTERM, with /metrics and /healthz. A round that fails is logged.

    A round is a process of its own, the same command without `--every`: with it ends Spark's JVM, which takes up to a
    gigabyte, and does nothing until the next one.

    Raises UserError if `every` is no duration, and what `act` raises if it is to act once.
    """
    if every is None:
        act()
        return
    seconds, stop = seconds_of(every, "--every"), stop_on_signals()
    command = [sys.executable, *once(sys.orig_argv[1:])]
    Rounds(seconds, lambda: run_until(stop, command)).run(stop)


def once(arguments: Sequence[str]) -> list[str]:
    """The arguments of a command without `--every` and its value."""
    return list(_once(iter(arguments)))


def _once(arguments: Iterator[str]) -> Iterator[str]:
    for one in arguments:
        if one == "--every":
            next(arguments)
        elif not one.startswith("--every="):
            yield one


def run_until(stop: threading.Event, command: Sequence[str]) -> None:
    """Run a command to its end, or end it once `stop` is set. Raises CalledProcessError if it fails by itself."""
    with subprocess.Popen(command) as process:
        while process.poll() is None:
            if stop.wait(POLL_SECONDS):
                process.terminate()
                return
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)


class Rounds:
    """Acts each so many seconds."""

    def __init__(self, seconds: float, act: Callable[[], None]) -> None:
        self._seconds, self._act = seconds, act
        self._succeeded = time.monotonic()

    def run(self, stop: threading.Event) -> None:
        """Act until `stop` is set."""
        with MetricsServer(load_settings(), self.unhealthy):
            while not stop.is_set():
                try:
                    self._act()
                except Exception:  # the next round may succeed
                    log.exception("maintenance failed", next_in_seconds=self._seconds)
                else:
                    self._succeeded = time.monotonic()
                    DONE.set_to_current_time()
                stop.wait(self._seconds)

    def unhealthy(self) -> str | None:
        """That no round has succeeded for long; None while one has."""
        since = time.monotonic() - self._succeeded
        return f"no success for {since:.0f} s" if since > LATE * self._seconds else None
