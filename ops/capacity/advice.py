"""How many cores and partitions a running job would need, from how busy it was and how its lag went."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, NamedTuple

from infra.errors import UserError


class Seen(NamedTuple):
    """What the metrics of a job said at one moment: totals since its process began, and its lag then."""

    batch_seconds: Mapping[str, float]  # by query
    rows: float
    lag: float


class Room(NamedTuple):
    """What a job has: the cores of its application, of which a task takes one, and the partitions that it reads."""

    cores: int
    partitions: int


@dataclass(frozen=True)
class Target:
    """What is wanted: cores that are busy for so much of their time at most, and a lag that is gone within so long."""

    busy: float = 0.6
    catch_up_seconds: float = 600.0


@dataclass(frozen=True)
class Advice:
    """What was seen of a job, and what it needs.

    Attributes:
        busy: the part of the time in which its busiest query ran a batch.
        rows_per_second: read.
        lag, lag_per_second: records not read yet at the end, and their growth.
        cores_needed: for what comes in and, within the time that is wanted, for what waits.
        partitions_needed: more cores than partitions would have nothing to do.
    """

    job: str
    busy: float
    rows_per_second: float
    lag: float
    lag_per_second: float
    cores: int
    cores_needed: int
    partitions: int
    partitions_needed: int

    @property
    def says(self) -> str:
        """What is to be done; fewer cores are only advised where a third of them would do."""
        if not self.rows_per_second:
            return "no batch has ended: watch it longer" if self.lag else "stay"
        if self.partitions_needed > self.partitions:
            return f"{self.cores_needed} cores and, before them, {self.partitions_needed} partitions"
        if self.cores_needed > self.cores or 3 * self.cores_needed <= self.cores:
            return f"{self.cores_needed} core{'s' if self.cores_needed > 1 else ''}"
        return "stay"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return vars(self) | {"says": self.says}


def advise(job: str, seen: tuple[Seen, Seen], seconds: float, room: Room, target: Target) -> Advice:
    """The advice for a job that was seen twice, so many seconds apart.

    The work of a row is taken to stay as it is, and to be spread evenly over the cores. What waits for a job that is
    not busy doesn't wait for cores.
    """
    before, after = seen
    if after.rows < before.rows:  # its process was started again, and counts from there
        before = Seen({}, 0.0, before.lag)
    rows, growth = (after.rows - before.rows) / seconds, (after.lag - before.lag) / seconds
    spent = (after.batch_seconds[query] - before.batch_seconds.get(query, 0.0) for query in after.batch_seconds)
    busy = min(1.0, max(spent, default=0.0) / seconds)
    wanted = max(rows + growth, 0.0) + after.lag / target.catch_up_seconds
    more = wanted / rows if rows and busy > target.busy else 1.0
    needed = max(1, ceil(room.cores * busy * more / target.busy)) if rows else room.cores
    return Advice(
        job=job,
        busy=busy,
        rows_per_second=rows,
        lag=after.lag,
        lag_per_second=growth,
        cores=room.cores,
        cores_needed=needed,
        partitions=room.partitions,
        partitions_needed=max(room.partitions, needed),
    )


def cores_of(master: str) -> int:
    """The cores of a Spark master of one machine, such as `local[2,4]`. Raises UserError for another one."""
    found = re.fullmatch(r"local(?:\[(\d+)(?:,\d+)?\])?", master)
    if not found:
        raise UserError(f"KAPPA_SPARK_MASTER={master}: its cores can't be seen from here; give them by --cores")
    return int(found[1] or 1)
