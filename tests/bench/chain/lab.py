"""What `make bench` runs: a broker, the jobs and the load as processes, and what they use and how far they are."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path

import psutil

from connectors.kafka.admin import apply, connect
from connectors.kafka.offsets import Log, missing
from connectors.kafka.security import SECRETS
from infra.contract.offsets import Offsets
from infra.contract.topics import load_topics
from infra.jars import default_jars
from infra.local.identities import ADMIN, Identities
from infra.local.kafka import KafkaBroker
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.job_addresses import ALL
from tests.acting import acting_as
from tests.bench.background import Background
from tests.chaos.processes import Job, session_of
from tests.waiting import until

PORT = 31900
BROKER_SECONDS, START_SECONDS = 180.0, 900.0
STAGES = tuple(name for name in JOBS.applications(JOBS.enabled()) if JOBS[name].uses_spark)


class Lab:
    """A broker of its own below `home`, and the jobs of one generation.

    With `identities` the broker is secured, each job is its own user of it, and whoever uses this object is within
    `administering(identities)`.
    """

    def __init__(
        self, home: Path, settings: Mapping[str, str], port: int = PORT, identities: Identities | None = None
    ) -> None:
        self.home = home
        self.identities = identities
        self.broker = KafkaBroker(home / "broker", port, jars=default_jars(), identities=identities)
        self.log = Log(self.broker.address)
        self._settings = settings
        file = settings.get("KAPPA_TOPICS_FILE")
        self._declared = load_topics(Path(file) if file else None)
        self.move_to("live")

    def move_to(self, generation: str) -> None:
        """From now on, jobs of this generation: with topics, checkpoints and groups of their own."""
        self.settings = Settings(home=self.home, kafka_bootstrap=self.broker.address, generation=generation)
        self.topics = JOBS.topics_in(self._declared, generation)
        environment = {
            "KAPPA_HOME": str(self.home),
            "KAPPA_JARS": str(default_jars()),
            "KAPPA_KAFKA_BOOTSTRAP": self.broker.address,
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_GENERATION": generation,
            **self._settings,
        }
        self.jobs = {name: self._job(name, environment) for name in STAGES}
        if self.settings.profile == "small":
            self.jobs = dict.fromkeys(STAGES, self._job(ALL, environment))

    def _job(self, name: str, environment: Mapping[str, str]) -> Job:
        log = self.home / f"{name}-{self.settings.generation}.log"
        return Job(name, ("run", name), {**environment, **self._secrets_of(name)}, log)

    def _secrets_of(self, job: str) -> dict[str, str]:
        return {SECRETS: str(self.identities.user(f"kappa-{job}"))} if self.identities else {}

    @contextmanager
    def up(self) -> Iterator["Lab"]:
        """The broker with its topics; in the end all processes are ended."""
        self.broker.spawn()
        try:
            until(self.broker.ready, BROKER_SECONDS, "the broker does not start")
            if self.identities:
                self._make_users(self.identities)
            yield self
        finally:
            self.stop()
            self.broker.stop()

    def _make_users(self, identities: Identities) -> None:
        apply(connect(self.broker.address), self.topics)
        variables = {"KAPPA_KAFKA_BOOTSTRAP": self.broker.address, "KAPPA_HOME": str(self.home)}
        command = [sys.executable, "-m", "ops.cli", "acl", "apply", "--users", str(identities.user(""))]
        subprocess.run(command, env=os.environ | variables, check=True, stdout=subprocess.DEVNULL)

    def start(self, *names: str) -> None:
        """Start jobs and wait until their queries run."""
        apply(connect(self.broker.address), self.topics)
        for name in names:
            self.spawn(name)
        for name in names:
            until(lambda name=name: self._runs(name), START_SECONDS, f"{name} does not start")

    def spawn(self, name: str) -> None:
        """Start a job's process, unless it runs: in the profile small, another job has started it."""
        job = self.jobs[name]
        if job.process is None or job.code is not None:
            job.start()

    def _runs(self, name: str) -> bool:
        self.check(name)
        return self.jobs[name].said('"started"')

    def check(self, *names: str) -> None:
        """Fail if one of these jobs, or of all that were started, has ended."""
        for name in names or self.jobs:
            job = self.jobs[name]
            assert job.process is None or job.code is None, f"{name} ended: {job.output()[-600:]}"

    def stop(self, *names: str) -> None:
        """End jobs, or all, at once: nobody needs what they would still write."""
        for name in names or self.jobs:
            self.jobs[name].clean()

    def leaders(self, *names: str) -> dict[str, int]:
        """The processes whose sessions are the jobs' and the broker's, by their names."""
        jobs = [self.jobs[name] for name in names]
        running = self.broker.running
        assert running
        return {job.name: job.process.pid for job in jobs if job.process} | {"broker": running.pid}

    def load(self, rate: int, seconds: int, machines: int, *, singles: bool) -> subprocess.Popen[bytes]:
        """The load as a process; its facts stand on its output in the end."""
        options = {"--bootstrap": self.broker.address, "--rate": rate, "--seconds": seconds, "--machines": machines}
        flat = [str(part) for pair in options.items() for part in pair]
        command = [sys.executable, "-m", "tests.bench.chain.load", *flat, *(["--singles"] if singles else [])]
        return subprocess.Popen(command, stdout=subprocess.PIPE)

    def groups(self, stage: str) -> dict[str, tuple[str, ...]]:
        """A stage's consumer groups and what they read."""
        each = JOBS[stage].reads_of(self.topics)
        return {self.settings.query_of(query): tuple(topic.name for topic in read) for query, read in each.items()}

    def position(self, stage: str) -> tuple[int, int]:
        """Records that a stage has read, and those that it has not read yet."""
        each = [self._offsets(group, read) for group, read in self.groups(stage).items()]
        return sum(sum(done.values()) for done, _ in each), sum(missing(done, ends) for done, ends in each)

    def _offsets(self, group: str, topics: tuple[str, ...]) -> tuple[Offsets, Offsets]:
        ends = self.log.ends(topics)
        return self.log.committed(group, ends), ends


def administering(identities: Identities | None) -> AbstractContextManager[None]:
    """Within, this process and those that it starts are the administrator of a secured broker, if it is one."""
    return acting_as(identities.user(ADMIN) if identities else None)


class Usage:
    """CPU time and memory of groups of processes, looked at again and again, as processes come and go.

    A group is the session of its leader, and those of its helpers.
    """

    def __init__(self, leaders: Mapping[str, int], helpers: Mapping[str, Sequence[int]] = {}) -> None:
        self.leaders = {name: (leader, *helpers.get(name, ())) for name, leader in leaders.items()}
        self.peak_megabytes = dict.fromkeys(leaders, 0.0)
        self._cpu: dict[str, dict[int, float]] = {name: {} for name in leaders}

    def look(self) -> dict[str, float]:
        """Take the figures of now; gives each group's CPU seconds since its processes began."""
        for name, leaders in self.leaders.items():
            family = [process for leader in leaders for process in session_of(leader)]
            self._cpu[name] |= {one.pid: seconds for one in family if (seconds := _cpu_seconds(one)) is not None}
            self.peak_megabytes[name] = max(self.peak_megabytes[name], sum(map(_megabytes, family)))
        return {name: sum(seen.values()) for name, seen in self._cpu.items()}


def _cpu_seconds(process: psutil.Process) -> float | None:
    with suppress(psutil.NoSuchProcess):
        return sum(process.cpu_times()[:2])
    return None


def _megabytes(process: psutil.Process) -> float:
    with suppress(psutil.NoSuchProcess):
        return process.memory_full_info().uss / 2**20
    return 0.0


class Every(Background):
    """Calls `look` each `seconds`, until its block ends."""

    def __init__(self, seconds: float, look: Callable[[], object]) -> None:
        super().__init__()
        self.seconds, self.look = seconds, look

    def run(self) -> None:
        """Until the block ends."""
        while not self.over.wait(self.seconds):
            self.look()
