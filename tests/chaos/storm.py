"""Seeded kill -9, each at a random moment."""

import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from random import Random

from infra.local.server import Server
from tests.chaos.chain import Chain
from tests.chaos.processes import Job
from tests.waiting import until

KILLS = int(os.environ.get("KAPPA_CHAOS_KILLS", "20"))
SEED = int(os.environ.get("KAPPA_CHAOS_SEED", "1"))
PATIENCE_SECONDS = 75.0  # a job whose predecessor in the chain is dead has nothing to do: it is struck all the same
DIES_SECONDS = 60.0  # how long a driver may take to notice that its JVM is gone


@dataclass(frozen=True)
class Target:
    """What is killed again and again: `strike` returns once it is dead and will be started again."""

    name: str
    ready: Callable[[], bool]
    strike: Callable[[Random], None]
    start_seconds: float  # a kill while it starts comes within this
    work_seconds: float  # one while it works, so long after it is ready


def job_target(chain: Chain, name: str) -> Target:
    """A job; mostly all of it dies at once, else only its driver or only its JVM."""
    job = chain.jobs[name]
    if name == "indexer":
        return Target(name, lambda: job.code is None, lambda rng: _strike(job, job.kill), 3.0, 12.0)
    return Target(name, lambda: job.said('"event": "batch"'), lambda rng: _strike(job, _way(job, rng)), 25.0, 5.0)


def _way(job: Job, rng: Random) -> Callable[[], None]:
    return rng.choices([job.kill, job.kill_driver, job.kill_jvm], [6, 2, 2])[0]


def _strike(job: Job, kill: Callable[[], None]) -> None:
    starts = len(job.sessions)
    kill()
    until(lambda: len(job.sessions) > starts, DIES_SECONDS, f"{job.name}: the driver outlives its JVM", 0.1)


def server_target(name: str, servers: Iterable[Server], start_seconds: float, work_seconds: float) -> Target:
    """One of the servers at a time."""
    servers = list(servers)

    def strike(rng: Random) -> None:
        server = rng.choice(servers)
        server.kill()
        time.sleep(rng.uniform(0, 3))
        server.spawn()

    return Target(name, lambda: all(server.ready() for server in servers), strike, start_seconds, work_seconds)


def storm(chain: Chain, targets: Iterable[Target], kills: int, seed: int) -> Counter:
    """Kill every target so often, all of them in parallel; how often each was struck."""
    struck: Counter = Counter()
    failures: list[BaseException] = []
    threads = [
        threading.Thread(
            target=_timeline, args=(chain, target, kills, Random(f"{seed}/{target.name}"), struck, failures)
        )
        for target in targets
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return struck


def _timeline(
    chain: Chain, target: Target, kills: int, rng: Random, struck: Counter, failures: list[BaseException]
) -> None:
    try:
        for _ in range(kills):
            if failures:
                return
            while_starting = rng.random() < 0.35
            if while_starting:
                time.sleep(rng.uniform(0, target.start_seconds))
            else:
                _await_ready(chain, target)
                time.sleep(rng.uniform(0, target.work_seconds))
            target.strike(rng)
            struck[target.name] += 1
    except BaseException as error:
        failures.append(error)


def _await_ready(chain: Chain, target: Target) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not target.ready() and time.monotonic() < deadline:
        chain.check()
        time.sleep(0.1)
