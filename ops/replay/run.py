"""Starts a planned generation and runs its jobs until they have caught up, or until they are stopped."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.replay import check_condition
from jobs.runtime.settings import Settings
from jobs.runtime.supervisor import Child, keep_running
from jobs.table import JOBS
from ops.replay.plan import inputs
from ops.replay.progress import CatchUp, Progress, Watched
from ops.replay.registry import Generation, Registry, write
from ops.replay.restore import create_topics
from ops.savepoints import savepoints
from ops.savepoints.saved import Savepoint

POLL_SECONDS = 1.0
FOR_EVER = "-1"

Report = Callable[[Progress, str | None], None]  # the progress; the consumer group that still has a lag, or None


def begin(generation: Generation, saved: Savepoint | None, registry: Registry, settings: Settings) -> None:
    """Check the plan, create what the generation needs, and write the plan to the registry.

    Raises UserError, before anything is created, if the condition is invalid or the savepoint doesn't fit.
    """
    registry.generations[generation.name] = generation
    topics = registry.topics(generation.name, load_topics(settings.topics_file))
    own = settings.model_copy(update={"generation": generation.name})
    if generation.replay.where:
        check_condition(generation.replay.where, inputs(generation.jobs[0], topics))
    if saved:
        savepoints.check_starts(saved, generation)
        job_settings = load_job_settings(JOBS[saved.job], generation.changes(saved.job))
        savepoints.check_fits(saved, own, job_settings, topics, Log(settings.kafka_bootstrap))
    prepare(generation, topics, settings)
    if generation.source == "delta":
        create_topics(generation, topics, settings)
    if saved:
        savepoints.restore(saved, own, job_settings, topics)
    write(settings.kafka_bootstrap, generation)


def prepare(generation: Generation, topics: TopicMap, settings: Settings) -> None:
    """Create the generation's own topics, with unlimited retention until it is promoted.

    Retention goes by the records' timestamps, which are those of the replayed log: old records would be deleted while
    they are being written.
    """
    client = admin.connect(settings.kafka_bootstrap)
    own = list(topics.derived)
    admin.apply(client, own)
    admin.set_config(client, {topic.name: {"retention.ms": FOR_EVER} for topic in own if topic.cleanup == "delete"})


def run(watched: Watched, stop: threading.Event, report: Report, *, stay: bool) -> None:
    """Run the jobs as processes; returns once they have caught up, or with `stay` when `stop` is set.

    Raises UserError if one of them ends with a UserError.
    """
    codes: list[int] = []
    ended = threading.Event()

    def supervise() -> None:
        codes.append(keep_running(_children(watched), watched.settings, ended, together=True))
        stop.set()

    with only_one(watched.settings):
        supervisor = threading.Thread(target=supervise, name="supervisor")
        supervisor.start()
        try:
            follow(watched, stop, report, stay=stay)
        finally:
            ended.set()
            supervisor.join()
    if codes[0]:
        raise UserError(
            f"generation={watched.generation.name}: a job refuses to run; see {log_folder(watched.settings)}"
        )


def follow(watched: Watched, stop: threading.Event, report: Report, *, stay: bool) -> None:
    """Report how far the jobs are; returns once they have caught up, or with `stay` when `stop` is set."""
    catch_up: CatchUp | None = CatchUp(watched)
    while not stop.wait(POLL_SECONDS):
        waiting = catch_up.look() if catch_up else None
        report(watched.progress(), waiting)
        if waiting is None and catch_up:
            catch_up = None
            done = watched.generation.model_copy(update={"state": "caught up"})
            write(watched.settings.kafka_bootstrap, done)
            if not stay:
                return


def _children(watched: Watched) -> list[Child]:
    settings, ref = watched.settings, watched.generation.ref
    folder = log_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    code = checkout(ref, settings) if ref else None
    environment = {"KAPPA_TRIGGER_SECONDS": "0.2", **os.environ} | {
        "KAPPA_GENERATION": watched.generation.name,
        "KAPPA_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        "KAPPA_ELASTICSEARCH_URL": settings.elasticsearch_url,
        "KAPPA_HOME": str(settings.home.resolve()),
        "KAPPA_METRICS_PORT": "0",
    }
    applications = JOBS.applications(watched.generation.jobs)
    return [
        Child(name, environment | settings.identity_of(name), folder / f"{name}.log", code) for name in applications
    ]


def detach(name: str, settings: Settings) -> Path:
    """Start `kappa replay resume NAME` in the background; returns the path of its log."""
    folder = log_folder(settings.model_copy(update={"generation": name}))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replay.log"
    with path.open("ab") as log:
        command = [sys.executable, "-m", "ops.cli", "replay", "resume", name]
        environment = {
            **os.environ,
            "KAPPA_HOME": str(settings.home.resolve()),
            "KAPPA_KAFKA_BOOTSTRAP": settings.kafka_bootstrap,
        }
        subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
    return path


def log_folder(settings: Settings) -> Path:
    """The folder of the logs of a generation's jobs."""
    return settings.home.resolve() / "log" / settings.generation


def checkout(ref: str, settings: Settings) -> Path:
    """Check out the project's code of a git commit into a folder below home; returns the folder.

    Raises UserError if there is no such commit, or the project is not a git work tree.
    """
    project = Path(__file__).parents[2]
    commit = _git(project, "rev-parse", "--verify", f"{ref}^{{commit}}")
    folder = settings.home.resolve() / "code" / commit
    if not folder.exists():
        _git(project, "worktree", "add", "--detach", str(folder), commit)
    return folder


def _git(project: Path, *command: str) -> str:
    done = subprocess.run(["git", "-C", str(project), *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise UserError(f"--ref: git {command[0]}: {done.stderr.strip()}")
    return done.stdout.strip()


def pid_file(settings: Settings) -> Path:
    """The pid file of the process that runs a generation on this machine."""
    return log_folder(settings) / "replay.pid"


def running(settings: Settings) -> int | None:
    """The pid of the process that runs the generation here, if there is one."""
    try:
        pid = int(pid_file(settings).read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    return pid


@contextmanager
def only_one(settings: Settings) -> Iterator[None]:
    """Raises UserError if a process runs the generation on this machine; none else does until this ends."""
    if (pid := running(settings)) is not None:
        raise UserError(f"generation={settings.generation}: process {pid} runs it here already; end that one first")
    pid_file(settings).parent.mkdir(parents=True, exist_ok=True)
    pid_file(settings).write_text(str(os.getpid()))
    try:
        yield
    finally:
        pid_file(settings).unlink(missing_ok=True)


class Pace:
    """The throughput of the last half minute."""

    def __init__(self) -> None:
        self._seen: list[tuple[float, int]] = []

    def rate(self, done: int) -> float:
        """Records a second, with `done` records so far."""
        now = time.monotonic()
        self._seen = [(at, count) for at, count in self._seen if now - at < 30] + [(now, done)]
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - first) if last > first else 0.0
