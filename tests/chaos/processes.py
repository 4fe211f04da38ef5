"""The chain's processes, each in a session of its own, and the ways to kill them."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

import jobs

STOP_SECONDS = 120.0
CODE = str(Path(jobs.__path__[0]).parent)  # that the tests run
KAPPA = (sys.executable, "-m", "ops.cli")
# What an outage of the broker makes a starting job say; starting again is then right.
OUTAGE = "broker answers"  # none does


def session_of(leader: int) -> list[psutil.Process]:
    """Every live process of a session: a job's driver, its JVM and its Python workers, whatever their group."""
    return [process for process in psutil.process_iter() if _session(process) == leader]


def _session(process: psutil.Process) -> int | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else os.getsid(process.pid)
    except (ProcessLookupError, psutil.NoSuchProcess):
        return None


@dataclass
class Job:
    """One `kappa` command, or another program's, started again by `tend` whenever it has died."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    program: tuple[str, ...] = KAPPA
    extra: dict[str, str] = field(default_factory=dict)  # environment of the next starts
    process: subprocess.Popen[bytes] | None = None
    sessions: list[int] = field(default_factory=list)
    log_start: int = 0

    def start(self) -> None:
        """Start it; the log goes on."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.log_start = log.tell()
            self.process = subprocess.Popen(
                [*self.program, *self.command],
                env={**os.environ, **self.environment, **self.extra},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.sessions.append(self.process.pid)

    @property
    def code(self) -> int | None:
        """The exit code; None while it runs."""
        assert self.process is not None
        return self.process.poll()

    def said(self, text: str) -> bool:
        """Whether it has logged this since its start."""
        return text in self.output()

    def output(self) -> str:
        """What it has logged since its start."""
        if not self.log.exists():
            return ""
        with self.log.open("rb") as log:
            log.seek(self.log_start)
            return log.read().decode(errors="replace")

    def tend(self) -> None:
        """Start it again if it died. Fails if it refused to run for another reason than an outage."""
        if self.code is None:
            return
        assert self.code != 2 or self.said(OUTAGE), f"{self.name} refuses to run: {self.output()[-600:]}"
        self.start()

    def kill(self) -> None:
        """All of it at once, as a power cut would."""
        process = self.process  # the tending thread may put the next one there at once
        assert process is not None
        _kill(session_of(process.pid))
        process.wait()

    def kill_driver(self) -> None:
        """The Python driver only: its JVM finds out by itself."""
        process = self.process
        assert process is not None
        process.kill()
        process.wait()

    def kill_jvm(self) -> None:
        """The JVM only: the driver must end by itself. All of it if there is no JVM yet."""
        assert self.process is not None
        jvms = [process for process in session_of(self.process.pid) if _is_jvm(process)]
        _kill(jvms)
        if not jvms:
            self.kill()

    def stop(self) -> None:
        """In good order; what then still lives is killed."""
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM)  # nothing happens if it has ended
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(STOP_SECONDS)
        self.clean()

    def clean(self) -> None:
        """Kill whatever is left of all its starts."""
        _kill([process for leader in self.sessions for process in session_of(leader)])
        if self.process is not None:
            self.process.wait()


def _is_jvm(process: psutil.Process) -> bool:
    try:
        return process.name() == "java"
    except psutil.NoSuchProcess:
        return False


def _kill(processes: list[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
