"""The folder of a process for Spark's files: shuffles, blocks, copies of shards. A process that was killed leaves its.

Whoever opens one deletes those of processes that are gone. That a process lives, its lock says, which ends with it
however it ends; a name or a process id could be another one's by now.
"""

import fcntl
import os
import shutil
import socket
from functools import cache
from pathlib import Path

import structlog

LOCK = ".lock"

log = structlog.get_logger()


@cache
def scratch_of_this_process(home: Path) -> Path:
    """A folder below `home` that is this process's own, for as long as it lives; others' that are gone are deleted."""
    root = home.resolve() / "spark"
    root.mkdir(parents=True, exist_ok=True)
    own = root / f"{socket.gethostname()}-{os.getpid()}"
    for other in root.iterdir():
        if other.is_dir() and not other.name.startswith(".") and _is_left(other):
            shutil.rmtree(other, ignore_errors=True)
            log.info("files of a process that is gone deleted", folder=str(other))
    unlocked = root / f".{own.name}"  # nobody looks at it before it is locked
    unlocked.mkdir(exist_ok=True)
    lock = os.open(unlocked / LOCK, os.O_CREAT | os.O_RDWR)  # never closed
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    unlocked.rename(own)
    return own


def _is_left(folder: Path) -> bool:
    """Whether nobody holds the folder's lock. One without a lock is of a former version, or not its process's yet."""
    try:
        lock = os.open(folder / LOCK, os.O_RDWR)
    except FileNotFoundError:
        return _is_of_former_version(folder)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # held, or the file system knows no locks
        return False
    finally:
        os.close(lock)
    return True


def _is_of_former_version(folder: Path) -> bool:
    """Spark's own folders stood directly in the root; no job of that version runs beside one of this."""
    return folder.name.startswith(("blockmgr-", "spark-"))
