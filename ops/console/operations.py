"""What takes longer than a request: commands of `kappa`, run beside the console under a person's name.

A command is the one that one would type, so there is one way to do it, with its own checks and memory. It goes on if
the console ends. What it said is kept while the console runs; that it was begun, by whom, is in the log.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from shlex import join
from typing import IO, Any

import orjson
import structlog

from infra.errors import UserError

MOST_AT_ONCE = 2
MOST_KEPT = 20
SHOWN_BYTES = 4_000  # of the end of what a command says
LARGEST_RESULT = 20_000_000

_log = structlog.get_logger(__name__)


class ElsewhereError(Exception):
    """A command has to be typed elsewhere: its text."""


@dataclass
class Operation:
    """A command that was begun."""

    number: int
    arguments: tuple[str, ...]
    by: str
    process: subprocess.Popen[bytes]
    result: IO[bytes]  # what it writes to stdout
    said: IO[bytes]  # to stderr
    begun: float = field(default_factory=time.time)
    ended: float | None = None

    @property
    def command(self) -> str:
        """As one would type it."""
        return f"kappa {join(self.arguments)}"

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        code = self.process.poll()
        if code is not None and self.ended is None:
            self.ended = time.time()
        return code

    def text(self) -> str:
        """The end of what it has said."""
        return "\n".join(filter(None, (_tail(self.result), _tail(self.said))))

    def json(self) -> Any:
        """What it wrote to stdout, as JSON. Raises UserError if it is none, or too much."""
        size = os.fstat(self.result.fileno()).st_size
        if size > LARGEST_RESULT:
            raise UserError(f"{self.command}: its result has {size:,} bytes; read it by typing the command")
        try:
            return orjson.loads(os.pread(self.result.fileno(), size, 0))
        except orjson.JSONDecodeError:
            raise UserError(f"{self.command}: {self.text() or 'has said nothing'}") from None


class Operations:
    """The commands that this console has begun."""

    def __init__(self, environment: Mapping[str, str], toolbox: str | None) -> None:
        """`environment` is added to the console's own; with a `toolbox` nothing is run here."""
        self._environment, self._toolbox = environment, toolbox
        self._lock = threading.Lock()
        self._begun: list[Operation] = []

    def begin(self, arguments: Sequence[str], by: str) -> Operation:
        """Run `kappa` with these arguments in the background.

        Raises ElsewhereError where that can't be done here, UserError if the same command runs, or as many as may be.
        """
        if self._toolbox:
            raise ElsewhereError(f"{self._toolbox} {join(arguments)}")
        with self._lock:
            running = [one for one in self._begun if one.code is None]
            if any(one.arguments == tuple(arguments) for one in running):
                raise UserError(f"kappa {join(arguments)}: runs already")
            if len(running) >= MOST_AT_ONCE:
                raise UserError(f"{MOST_AT_ONCE} commands run already: {', '.join(one.command for one in running)}")
            number = self._begun[-1].number + 1 if self._begun else 1
            operation = self._start(number, tuple(arguments), by)
            self._begun = [*self._begun, operation][-MOST_KEPT:]
        _log.info("operation", command=operation.command, by=by)
        return operation

    def _start(self, number: int, arguments: tuple[str, ...], by: str) -> Operation:
        # Files, not pipes: it goes on if the console ends. They are read as long as the operation is known.
        result, said = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115
        process = subprocess.Popen(
            [sys.executable, "-m", "ops.cli", *arguments],
            env={**os.environ, **self._environment},
            stdin=subprocess.DEVNULL,
            stdout=result,
            stderr=said,
            start_new_session=True,
        )
        return Operation(number, arguments, by, process, result, said)

    def every(self) -> list[Operation]:
        """Those that are known, the newest first."""
        return list(reversed(self._begun))

    def find(self, number: str) -> Operation:
        """One of them. Raises UserError if it isn't known."""
        found = [one for one in self._begun if str(one.number) == number]
        if not found:
            raise UserError(f"operation={number!r}: isn't known; the console forgets when it ends")
        return found[0]

    def sign(self) -> object:
        """Another value once something was begun, said or ended."""
        return [(one.number, one.code, _size(one.result), _size(one.said)) for one in self._begun]


def listed(arguments: Sequence[str]) -> Any:
    """What a command prints as JSON. Raises OSError if it says something else."""
    done = subprocess.run([sys.executable, "-m", "ops.cli", *arguments], capture_output=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.decode(errors="replace").strip()[-500:] or f"ended with code {done.returncode}")
    return orjson.loads(done.stdout)


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size


def _tail(file: IO[bytes]) -> str:
    size = _size(file)
    begin = max(0, size - SHOWN_BYTES)
    return os.pread(file.fileno(), SHOWN_BYTES, begin).decode(errors="replace").strip()
