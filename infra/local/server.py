"""A local server process: it has its own session, is found by a pid file, and is stopped as a process group."""

import json
import os
import re
import signal
import socket
import subprocess
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from infra.errors import UserError
from infra.processes import signals_delayed

STOP_SECONDS = 15.0


@dataclass(frozen=True)
class Running:
    """The content of a pid file; the start time (`created`) shows whether another process has the pid now."""

    pid: int
    created: float
    address: str

    @classmethod
    def read(cls, path: Path) -> "Running | None":
        """The process of a pid file, or None if there is no such file or it was cut short."""
        try:
            return cls(**json.loads(path.read_text()))
        except (FileNotFoundError, json.JSONDecodeError):
            return None

    def write(self, path: Path) -> None:
        """Write the pid file."""
        path.write_text(json.dumps(asdict(self)))

    def alive(self) -> bool:
        """Whether the process runs."""
        try:
            process = psutil.Process(self.pid)
            return process.create_time() == self.created and process.status() != psutil.STATUS_ZOMBIE
        except psutil.NoSuchProcess:
            return False

    def group(self) -> list[psutil.Process]:
        """The process and its children, or the children alone if it has ended; empty if another process has its pid."""
        if self._recycled():
            return []
        return [process for process in psutil.process_iter() if self._leads(process)]

    def signal(self, number: int) -> None:
        """Send a signal to the whole group, if it still exists."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def _recycled(self) -> bool:
        try:
            return psutil.Process(self.pid).create_time() != self.created
        except psutil.NoSuchProcess:
            return False

    def _leads(self, process: psutil.Process) -> bool:
        try:
            return os.getpgid(process.pid) == self.pid and process.create_time() >= self.created
        except (ProcessLookupError, psutil.NoSuchProcess):
            return False


class Server(ABC):
    """A server with its data, log and pid file below one home folder.

    A subclass defines the configuration, the command and the check for readiness.
    """

    flag: str  # the option that moves the server to another port
    ready_seconds = 180.0

    def __init__(self, name: str, home: Path, ports: tuple[int, ...]) -> None:
        self.name = name
        self.ports = ports
        self.folder = home / name
        self.log = home / "logs" / f"{name}.log"
        self._log_start = 0
        self._pid_file = home / "run" / f"{name}.json"

    @property
    @abstractmethod
    def address(self) -> str:
        """The address that a client connects to."""

    @abstractmethod
    def check(self) -> None:
        """Raise a UserError if something that the server needs is missing: Java, jars, a permission."""

    @abstractmethod
    def prepare(self) -> tuple[list[str | Path], dict[str, str]]:
        """Write the configuration; return the command and its additional environment variables."""

    @abstractmethod
    def ready(self) -> bool:
        """Whether the server answers a request."""

    @property
    def running(self) -> Running | None:
        """The running process, whichever program has started it, or None."""
        running = Running.read(self._pid_file)
        return running if running and running.alive() else None

    def check_ports(self) -> None:
        """Raise a UserError if another process listens on one of the ports."""
        for port in self.ports:
            if not _free(port):
                raise UserError(
                    f"port {port} ({self.name}) is busy; stop what listens there or choose one by {self.flag}"
                )

    def spawn(self) -> None:
        """Start the process without waiting until it is ready; a no-op if it runs."""
        if self.running:
            return
        self.kill()
        command, environment = self.prepare()
        for folder in (self.log.parent, self._pid_file.parent):
            folder.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log, signals_delayed():
            self._log_start = log.tell()
            process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            created = psutil.Process(process.pid).create_time()
            Running(process.pid, created, self.address).write(self._pid_file)

    def failed(self) -> UserError:
        """The error for a server that ended or didn't become ready, with the first error in its log since the start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            lines = log.read().decode(errors="replace").splitlines()
        fault = next((line.strip() for line in lines if re.search("ERROR|FATAL|Exception", line)), "no answer in time")
        return UserError(f"{self.name} did not start: {fault}; see {self.log}")

    def terminate(self) -> None:
        """Ask the process to end (SIGTERM), without waiting; a no-op if it doesn't run."""
        if running := self.running:
            running.signal(signal.SIGTERM)

    def stop(self) -> None:
        """Stop the process: SIGTERM, and SIGKILL after STOP_SECONDS; a no-op if it doesn't run."""
        if running := self.running:
            running.signal(signal.SIGTERM)
            psutil.wait_procs(running.group(), timeout=STOP_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the process and its children (SIGKILL)."""
        last = Running.read(self._pid_file)
        if last and (group := last.group()):
            last.signal(signal.SIGKILL)
            psutil.wait_procs(group, timeout=STOP_SECONDS)
        self._pid_file.unlink(missing_ok=True)


def _free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
