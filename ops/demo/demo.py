"""The steps of the demo: servers, the chain, a simulated cloud with faults beside this machine, the observation."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from elasticsearch import Elasticsearch

from connectors.kafka import admin
from connectors.kafka.security import SECRETS
from infra.contract.topics import TopicMap
from infra.errors import UserError
from infra.jars import default_jars
from infra.local import LocalServers
from infra.local.identities import ADMIN
from infra.settings import InfraSettings
from jobs.runtime.settings import Settings, load_settings
from ops.acl.principals import HOST, OPERATOR, SIMULATOR, SMALL
from ops.job_addresses import JobAddresses
from ops.launcher import topics_of
from ops.simulator.truth import WINDOW
from ops.verify.observer import Observer, Result

# kind:machine@+start/duration. The model needs a minute to learn the machines. The chain needs as long to learn how
# late events come, and half a minute more until it waits no longer than for that.
FAULTS = (
    "state_change:vm-09@+60s",
    "malformed:vm-03@+60s/20s",
    "late:vm-05@+60s/20s",
    "wrong_clock:vm-06@+70s/20s",
    "silence:vm-20@+90s/60s",
    "cpu_hog:vm-17@+100s/50s",
    "new_vm:vm-new@+100s",
    "log_burst:vm-12@+110s/30s",
)
SIMULATED_SECONDS = 150
# Collectors deliver within a second; log lines wait as long as OpenTelemetry's batch processor lets them.
SIMULATE = ("simulate", "--json", "--jitter", "1s", "--log-batch", "200ms")
# From the simulation's end: lateness, a window, and four jobs' batches on a busy machine.
SETTLE_SECONDS = 90.0
NANO = 1_000_000_000
CONSOLE_PORT = 8080

Report = Callable[[str], None]


@dataclass
class Demo:
    """The folder, settings, ports and processes of a demo. Its data is below `home` and is deleted at each start."""

    home: Path
    settings: Settings
    kafka_port: int
    elasticsearch_port: int
    secured: bool = False
    console_port: int = CONSOLE_PORT
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def at(cls, infra: InfraSettings, metrics_port: int, console_port: int, *, secured: bool) -> "Demo":
        """A demo in a folder below home."""
        folder = (infra.home / "demo").resolve()
        settings = load_settings(
            home=folder,
            kafka_bootstrap=f"127.0.0.1:{infra.kafka_port}",
            elasticsearch_url=f"{'https' if secured else 'http'}://127.0.0.1:{infra.elasticsearch_port}",
            metrics_port=metrics_port,
            # One young JVM compiles once what its jobs share; four would do so four times, on the same cores.
            profile="small",
            trigger_seconds=1,
        )
        return cls(folder, settings, infra.kafka_port, infra.elasticsearch_port, secured, console_port)

    @property
    def console(self) -> str:
        """The address of its pages."""
        return f"http://127.0.0.1:{self.console_port}"

    @property
    def servers(self) -> LocalServers:
        """The demo's Kafka and Elasticsearch."""
        return LocalServers(
            self.home,
            kafka_port=self.kafka_port,
            elasticsearch_port=self.elasticsearch_port,
            jars=default_jars(),
            secured=self.secured,
        )

    @property
    def topics(self) -> TopicMap:
        """The map of topics of the demo's generation."""
        return topics_of(self.settings)

    @property
    def truth_folder(self) -> Path:
        """The folder of the simulator's truth."""
        return self.home / "truth"

    def user(self, principal: str) -> str:
        """The user of secured servers that is a principal."""
        return f"{self.settings.principal_prefix}{principal}"

    def identity(self, user: str) -> dict[str, str]:
        """The variable that makes a process a user of the servers; none where nobody asks."""
        users = self.servers.identities
        return {SECRETS: str(users.user(user))} if users else {}

    def log_of(self, name: str) -> Path:
        """The log file of a process, by its name."""
        return self.home / "log" / f"{name}.log"


@contextmanager
def running(demo: Demo) -> Iterator[Demo]:
    """At the end of the block, stop what the demo has started: processes, then servers."""
    try:
        yield demo
    finally:
        for process in reversed(demo.processes.values()):
            _end(process)
        demo.servers.down()


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(120)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def start_servers(demo: Demo, report: Report) -> None:
    """Delete the data of an earlier demo, start Kafka and Elasticsearch, create the topics."""
    demo.servers.down()
    shutil.rmtree(demo.home, ignore_errors=True)
    demo.log_of("jobs").parent.mkdir(parents=True)
    servers = demo.servers
    servers.up(lambda server, state: report(f"{server}: {state}"))
    if servers.identities:
        _become(demo, ADMIN)
    admin.apply(admin.connect(demo.settings.kafka_bootstrap), demo.topics)
    if servers.identities:
        report("users and rights")
        users = str(servers.identities.user(""))
        _do(demo, "acl", "apply", "--trial", "--users", users)
        _do(demo, "acl", "keys", users)
        _become(demo, demo.user(OPERATOR))


def _become(demo: Demo, user: str) -> None:
    """From now on this process, which makes topics and users and then observes the chain, is a user of the servers."""
    os.environ |= demo.identity(user)
    demo.settings = Settings(**demo.settings.model_dump(exclude_unset=True))


def start_chain(demo: Demo) -> None:
    """Start all jobs: one application, which is a user of its own."""
    _start(demo, "jobs", "run", "all", user=SMALL)


def start_console(demo: Demo) -> None:
    """Start the console, at the demo's port for it."""
    _start(demo, "console", "console", "--port", str(demo.console_port), user=OPERATOR)


def console_answers(demo: Demo) -> bool:
    """Whether the console can be looked at."""
    return _is_healthy(JobAddresses(demo.settings), f"{demo.console}/healthz")


def start_feeds(demo: Demo) -> None:
    """Start the simulated cloud with its faults, and the collector of this machine."""
    faults = [part for fault in FAULTS for part in ("--fault", fault)]
    duration = f"{SIMULATED_SECONDS}s"
    truth = str(demo.truth_folder)
    _start(demo, "simulate", *SIMULATE, "--duration", duration, "--truth", truth, *faults, user=SIMULATOR)
    _start(demo, "host", "host", user=HOST)


def keep_feeding(demo: Demo) -> None:
    """Start a simulated cloud without faults, for after the first one has ended."""
    _start(demo, "simulate-on", *SIMULATE, "--truth", str(demo.home / "truth-on"), user=SIMULATOR)


def _start(demo: Demo, name: str, *arguments: str, user: str) -> None:
    """Start a process as the user of a principal."""
    with demo.log_of(name).open("ab") as log:
        process = subprocess.Popen(
            _command(*arguments),
            env=_environment(demo, demo.user(user)),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    demo.processes[name] = process


def _do(demo: Demo, *arguments: str) -> None:
    """Run a command to its end as the servers' administrator. Raises UserError, with its last line, if it fails."""
    done = subprocess.run(
        _command(*arguments), env=_environment(demo, ADMIN), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise UserError(done.stderr.strip().rpartition("\n")[2])


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "ops.cli", *arguments]


def _environment(demo: Demo, user: str) -> dict[str, str]:
    """The variables of a process that is a user of the servers, whoever this process is."""
    return {
        **{name: value for name, value in os.environ.items() if name != SECRETS},
        **demo.identity(user),
        "KAPPA_HOME": str(demo.home),
        "KAPPA_KAFKA_BOOTSTRAP": demo.settings.kafka_bootstrap,
        "KAPPA_ELASTICSEARCH_URL": demo.settings.elasticsearch_url,
        "KAPPA_METRICS_PORT": str(demo.settings.metrics_port),
        "KAPPA_PROFILE": demo.settings.profile,
        "KAPPA_TRIGGER_SECONDS": str(demo.settings.trigger_seconds),
        "KAPPA_JARS": str(default_jars()),
    }


def healthy_applications(demo: Demo) -> list[str]:
    """The names of the applications that are healthy by their /healthz."""
    jobs = JobAddresses(demo.settings)
    return [name for name in jobs.applications if _is_healthy(jobs, jobs.health(name))]


def _is_healthy(jobs: JobAddresses, address: str) -> bool:
    try:
        with jobs.open(address, 1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def check_processes(demo: Demo) -> None:
    """Raises UserError, with the end of its log, if a process has failed."""
    for name, process in demo.processes.items():
        if process.poll() not in (None, 0):
            log = demo.log_of(name)
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-5:])
            raise UserError(f"{name} ended with code {process.returncode}; the end of {log}:\n{tail}")


def simulation_ended(demo: Demo) -> bool:
    """Whether the simulation has ended and its truth is complete."""
    return (demo.truth_folder / "totals.json").exists()


class DemoObserver(Observer):
    """The observer of the demo's simulation, whose length it knows."""

    def __init__(self, demo: Demo, client: Elasticsearch) -> None:
        super().__init__(demo.settings, demo.truth_folder, client)

    def outcome(self) -> Result:
        """The comparison as of now."""
        return self.result(0, self._end())

    def final(self) -> Result | None:
        """The comparison, once every partition has emitted the last simulated window and every fault was found."""
        self.look()
        if self.emitted_until() < self._end():
            return None
        result = self.outcome()
        return result if result.passed else None

    def _end(self) -> int:
        first, _ = self.truth.span()
        return first - WINDOW + SIMULATED_SECONDS * NANO
