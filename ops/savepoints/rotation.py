"""Savepoints that are taken by a schedule, of each job or of all at once: only the newest are kept."""

from collections.abc import Callable, Sequence
from datetime import datetime

import structlog
from pyspark.sql import SparkSession

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.savepoints import savepoints
from ops.savepoints.saved import ChainSavepoint, Savepoint
from ops.savepoints.store import Store

PREFIX = "auto."

log = structlog.get_logger()


def rotate(jobs: Sequence[str], keep: int, settings: Settings, spark: SparkSession, now: datetime) -> list[Savepoint]:
    """Take a savepoint of each job, then delete all but the newest `keep` that this has taken of it.

    A job that can't be saved now, as it has done no batch yet, is logged and keeps those that it has.
    """
    taken: list[Savepoint] = []
    for job in jobs:
        family = f"{PREFIX}{settings.generation}.{job}."
        try:
            taken.append(savepoints.create(f"{family}{now:%Y%m%dT%H%M%SZ}", job, settings, spark))
        except (UserError, OSError) as error:
            log.warning("no savepoint taken", job=job, reason=str(error))
        else:
            _delete_old(family, keep, settings)
    return taken


def rotate_all(
    name: str, keep: int, settings: Settings, create: Callable[[str], ChainSavepoint], now: datetime
) -> ChainSavepoint:
    """Take a savepoint of all jobs by `create`, then delete all but the newest `keep` that this has taken."""
    family = f"{name}.{settings.generation}."
    taken = create(f"{family}{now:%Y%m%dT%H%M%SZ}")
    _delete_old(family, keep, settings)
    return taken


def _delete_old(family: str, keep: int, settings: Settings) -> None:
    """Delete a family's folders but the newest `keep` that are whole."""
    root = Store.of(settings.savepoint_of(""))
    names = [name for name in root.names() if name.startswith(family)]
    kept = sorted(savepoints.whole(names))
    for folder in sorted({name.partition("/")[0] for name in names} - {*kept[-keep:]}):  # also what a cut one has left
        (root / folder).remove()
        log.info("savepoint deleted", savepoint=folder)
