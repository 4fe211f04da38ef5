"""Runs several jobs as processes of their own, and starts again what dies."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from jobs.runtime.settings import Settings

log = structlog.get_logger()

USER_ERROR = 2  # the exit code of bad input: starting again would not mend it
BACKOFF_SECONDS = (1, 2, 5, 10, 30)
BROKER_PATIENCE_SECONDS = 3600
STEADY_SECONDS = 60.0  # after this long a process counts as started well


@dataclass
class Child:
    """The process of one application."""

    application: str
    environment: dict[str, str]
    log: Path | None = None  # otherwise its logs go where ours go
    code: Path | None = None  # the folder whose code it runs, otherwise ours
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started: float = 0.0
    due: float = field(default=0.0)

    def start(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "ops.cli", "run", self.application]
        with self.log.open("ab") if self.log else nullcontext() as output:
            # A session of its own: a Ctrl-C is passed on once, by us, in order.
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=output, cwd=self.code, start_new_session=True
            )
        self.started = time.monotonic()
        log.info("application started", application=self.application, pid=self.process.pid)

    def tend(self) -> int | None:
        """Start it again if it died; its exit code if there is no sense in that."""
        if self.process is None:
            if time.monotonic() >= self.due:
                self.start()
            return None
        code = self.process.poll()
        if code is None:
            return None
        if code == USER_ERROR:
            return code
        self._plan_restart(code)
        return None

    def _plan_restart(self, code: int) -> None:
        # It has run, so the address is right: if the broker is down now, it is waited for.
        self.environment["KAPPA_BROKER_PATIENCE_SECONDS"] = str(BROKER_PATIENCE_SECONDS)
        if time.monotonic() - self.started > STEADY_SECONDS:
            self.failures = 0
        wait = BACKOFF_SECONDS[min(self.failures, len(BACKOFF_SECONDS) - 1)]
        self.failures += 1
        self.due = time.monotonic() + wait
        self.process = None
        log.warning("application ended", application=self.application, code=code, restart_in_seconds=wait)

    def signal(self, number: int) -> None:
        """Send a signal, if it runs."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)


def supervise(applications: Sequence[str], settings: Settings, stop: threading.Event) -> int:
    """Run the applications until `stop`; metrics ports count up from settings.metrics_port. Gives the exit code."""
    return tend_all(
        [Child(application, _environment(settings, number)) for number, application in enumerate(applications)],
        settings,
        stop,
    )


def tend_all(children: Sequence[Child], settings: Settings, stop: threading.Event) -> int:
    """Keep the children running until `stop` or until one refuses to run; end all. Gives the exit code."""
    code = 0
    try:
        while not stop.wait(0.2):
            refused = [found for child in children if (found := child.tend()) is not None]
            if refused:
                code = refused[0]
                break
    finally:
        _stop(children, settings.drain_seconds + 30)
    return code


def _environment(settings: Settings, number: int) -> dict[str, str]:
    port = settings.metrics_port + number if settings.metrics_port else 0
    return {**os.environ, "KAPPA_METRICS_PORT": str(port)}


def _stop(children: Sequence[Child], patience: float) -> None:
    for child in children:
        child.signal(signal.SIGTERM)
    deadline = time.monotonic() + patience
    for child in children:
        if child.process is None:
            continue
        try:
            child.process.wait(max(0.1, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            log.error("application did not stop in time and is killed", application=child.application)
            child.process.kill()
            child.process.wait()
