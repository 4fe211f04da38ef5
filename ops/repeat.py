"""What a command does once, or again and again as a service: maintenance that a deployment without cron runs."""

import threading
import time
from collections.abc import Callable

import structlog
from prometheus_client import Gauge

from connectors.shutdown import stop_on_signals
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.settings import load_settings
from ops.units import seconds_of

DONE = Gauge("kappa_maintenance_done_timestamp_seconds", "When a round of this process's maintenance last succeeded")
LATE = 3  # intervals without success, after which it isn't healthy

log = structlog.get_logger()


def repeat(every: str | None, act: Callable[[], None]) -> None:
    """Act once; or each `every`, as 1d, until SIGTERM, with /metrics and /healthz. A round that fails is logged.

    Raises UserError if `every` is no duration, and what `act` raises if it is to act once.
    """
    if every is None:
        act()
        return
    Rounds(seconds_of(every, "--every"), act).run(stop_on_signals())


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
