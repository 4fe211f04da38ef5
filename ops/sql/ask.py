"""Asks in a process of its own, for at most some seconds and megabytes."""

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

import orjson

from infra.errors import UserError

LONGEST_SQL = 20_000  # characters
# Arrow's own allocator takes hundreds of megabytes at once, used or not, and all that is taken counts for the limit.
_ALLOCATOR = {"ARROW_DEFAULT_MEMORY_POOL": "system"}


@dataclass(frozen=True)
class Limits:
    """What a query may take, and how many rows of its result are wanted."""

    seconds: int = 30
    memory_mb: int = 512
    rows: int = 1_000


def ask(sql: str, limits: Limits = Limits(), environment: dict[str, str] | None = None) -> dict[str, Any]:
    """What a query gives, with how fresh each table is; of an empty query only that.

    `environment` is added to this process's own: settings. Raises UserError if it can't be answered within its limits.
    """
    if len(sql) > LONGEST_SQL:
        raise UserError(f"sql: has {len(sql):,} characters; at most {LONGEST_SQL:,} are taken")
    question = orjson.dumps({"sql": sql.strip(), **asdict(limits)})
    command = [sys.executable, "-m", "ops.sql.child"]
    try:
        done = subprocess.run(
            command,
            input=question,
            capture_output=True,
            timeout=limits.seconds,
            env={**os.environ, **_ALLOCATOR, **(environment or {})},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"sql: takes longer than {limits.seconds} s; ask for less, or give it more time") from None
    try:
        answer: dict[str, Any] = orjson.loads(done.stdout)
    except orjson.JSONDecodeError:
        raise UserError(_ended(done.returncode, done.stderr, limits)) from None
    if error := answer.get("error"):
        raise UserError(error)
    return answer


def _ended(code: int, stderr: bytes, limits: Limits) -> str:
    """Why the process has ended without an answer."""
    last = stderr.decode(errors="replace").strip().rpartition("\n")[2][:500]
    if code < 0 or "MemoryError" in last or "bad_alloc" in last:
        return f"sql: needs more than {limits.memory_mb} MB; ask for less, or give it more ({last or f'code {code}'})"
    return f"sql: the query's process ended with code {code}: {last}"
