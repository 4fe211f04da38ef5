"""A simulation of how Spark schedules a job's shards: whether so many cores keep up, and with which lag.

Shard n is folded by task n modulo the number of tasks, a free core takes the next task, and a batch ends with its last
one. What comes meanwhile waits for the next batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace

import numpy as np

SEED = 1
TRIGGER_SECONDS = 2.0  # the default of KAPPA_TRIGGER_SECONDS
LOOK_SECONDS = TRIGGER_SECONDS / 4  # after which enrichment has its next batch


@dataclass(frozen=True)
class Stage:
    """A job's work.

    Attributes:
        shares: of each shard, the part of all events that it has; their sum is 1.
        cpu_us: what an event costs.
        cores, tasks: one executor has one core; a batch has so many tasks.
        fixed_seconds: what a batch takes beside its tasks.
    """

    shares: Sequence[float]
    cpu_us: float
    cores: int
    tasks: int
    fixed_seconds: float

    def batch_seconds(self, events: float) -> float:
        """How long a batch of so many events takes."""
        work = [0.0] * min(self.tasks, len(self.shares))
        for shard, share in enumerate(self.shares):
            work[shard % len(work)] += share * events * self.cpu_us / 1e6
        cores = [0.0] * self.cores
        heapify(cores)
        for seconds in work:
            heapreplace(cores, cores[0] + seconds)
        return self.fixed_seconds + max(cores)


@dataclass(frozen=True)
class Outcome:
    """How a job does under a steady load, once it has settled."""

    keeps_up: bool
    batch_seconds: float | None  # of each batch; None if they become longer without end
    busy: float  # the part of the cores' time that tasks take


def shares(machines: int, shards: int) -> list[float]:
    """The part of a fleet that each shard has, as hashes spread names."""
    counts = np.random.default_rng(SEED).multinomial(machines, [1 / shards] * shards)
    return [int(count) / machines for count in counts]


def settle(stage: Stage, events_per_second: float, trigger_seconds: float = TRIGGER_SECONDS) -> Outcome:
    """Where a steady load leads: a batch has what came during the one before, or since the last trigger."""
    busy = events_per_second * stage.cpu_us / 1e6 / stage.cores
    # Of each second of load, so much is work of the core that ends last.
    load = stage.batch_seconds(events_per_second) - stage.fixed_seconds
    if load >= 1:
        return Outcome(False, None, busy)
    took = stage.fixed_seconds + load * trigger_seconds
    return Outcome(True, took if took <= trigger_seconds else stage.fixed_seconds / (1 - load), busy)


def backlog_rate(stage: Stage, events: int) -> float:
    """Events a second through a backlog, in batches of so many events."""
    return events / stage.batch_seconds(events)
