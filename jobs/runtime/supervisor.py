"""Runs each application as a process of its own, and restarts those that fail, with backoff.

One that ends with the exit code of a UserError stays down, since a person must decide; the others go on. Its `/healthz`
then says so, and `/metrics` has `kappa_application_refused`.
"""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import structlog

from infra.errors import UserError
from jobs.runtime.metrics import REFUSED, MetricsServer
from jobs.runtime.settings import Settings

log = structlog.get_logger()

USER_ERROR = 2  # the exit code of a UserError: a restart would fail in the same way
BACKOFF_SECONDS = (1, 2, 5, 10, 30)
BROKER_PATIENCE_SECONDS = 3600
STEADY_SECONDS = 60.0  # after so long the backoff of a process starts from its beginning


@dataclass
class Child:
    """The process of one application, and when to restart it."""

    application: str
    environment: dict[str, str]
    log: Path | None = None  # None: its logs go to this process's stderr
    code: Path | None = None  # the folder whose code it runs; None: this process's
    process: subprocess.Popen[bytes] | None = None
    failures: int = 0
    started: float = 0.0
    due: float = field(default=0.0)
    is_refused: bool = False  # it ended with USER_ERROR

    def start(self) -> None:
        """Start the process."""
        command = [sys.executable, "-m", "ops.cli", "run", self.application]
        with self.log.open("ab") if self.log else nullcontext() as output:
            # A session of its own: a Ctrl-C reaches only the supervisor, which then stops its children.
            self.process = subprocess.Popen(
                command, env=self.environment, stdout=output, stderr=output, cwd=self.code, start_new_session=True
            )
        self.started = time.monotonic()
        log.info("application started", application=self.application, pid=self.process.pid)

    def restart_if_ended(self) -> bool:
        """Start or restart the process when it is due; returns whether it has just ended with USER_ERROR."""
        if self.is_refused:
            return False
        if self.process is None:
            if time.monotonic() >= self.due:
                self.start()
            return False
        code = self.process.poll()
        if code is None:
            return False
        self.is_refused = code == USER_ERROR
        if not self.is_refused:
            self._plan_restart(code)
        return self.is_refused

    def _plan_restart(self, code: int) -> None:
        # It has run, so the address is right: a broker that is down now is waited for.
        self.environment["KAPPA_BROKER_PATIENCE_SECONDS"] = str(BROKER_PATIENCE_SECONDS)
        if time.monotonic() - self.started > STEADY_SECONDS:
            self.failures = 0
        wait = BACKOFF_SECONDS[min(self.failures, len(BACKOFF_SECONDS) - 1)]
        self.failures += 1
        self.due = time.monotonic() + wait
        self.process = None
        log.warning("application ended", application=self.application, code=code, restart_in_seconds=wait)

    def signal(self, number: int) -> None:
        """Send a signal to the process if it runs."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(number)


def supervise(applications: Sequence[str], settings: Settings, stop: threading.Event) -> int:
    """Run the applications until `stop`; metrics ports count up from settings.metrics_port. Returns the exit code."""
    children = [Child(name, _environment(settings, name, number)) for number, name in enumerate(applications)]
    return keep_running(children, settings, stop)


def keep_running(
    children: Sequence[Child], settings: Settings, stop: threading.Event, *, together: bool = False
) -> int:
    """Keep the children running until `stop`, or until all of them have ended with USER_ERROR; then stop all.

    With `together`, one that ends so is enough. Returns the exit code: USER_ERROR if one has ended with it.
    """
    with ExitStack() as signs:
        try:
            while not stop.wait(0.2):
                for child in [child for child in children if child.restart_if_ended()]:
                    _put_up_sign(child, settings, signs)
                down = [child for child in children if child.is_refused]
                if len(down) == len(children) or (together and down):
                    break
        finally:
            _stop(children, settings.drain_seconds + 30)
    return USER_ERROR if any(child.is_refused for child in children) else 0


def _put_up_sign(child: Child, settings: Settings, signs: ExitStack) -> None:
    """Say that a child stays down: in the log, and where its own metrics and health were."""
    reason = f"{child.application} ended with exit code {USER_ERROR}: a person must decide; its last line says what"
    log.error("application stays down", application=child.application, code=USER_ERROR, reason=reason)
    REFUSED.labels(child.application).set(1)
    if port := int(child.environment.get("KAPPA_METRICS_PORT", "0")):
        try:
            signs.enter_context(MetricsServer(settings.model_copy(update={"metrics_port": port}), lambda: reason))
        except UserError as error:  # somebody else has the port by now
            log.warning("no metrics of the application that stays down", reason=str(error))


def _environment(settings: Settings, application: str, number: int) -> dict[str, str]:
    port = settings.metrics_port + number if settings.metrics_port else 0
    return {**os.environ, **settings.identity_of(application), "KAPPA_METRICS_PORT": str(port)}


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
