"""Starts child processes such that a signal can't leave them behind."""

import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def signals_delayed() -> Iterator[None]:
    """Delay signals until the end of the block.

    A handler that raises between the fork of a child and the saving of its pid would leave the child behind.
    """
    if threading.current_thread() is not threading.main_thread():  # Python handles signals in the main thread only
        yield
        return
    held: list[int] = []

    def hold(number: int, _frame: FrameType | None) -> None:
        held.append(number)

    previous = {number: signal.signal(number, hold) for number in STOPPING}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
        for each in held:
            signal.raise_signal(each)


def run(
    command: Sequence[str | Path], environment: Mapping[str, str] | None = None, given: str | None = None
) -> tuple[int, str]:
    """Run a command that reads `given`; returns exit code and output (stdout and stderr).

    An exception meanwhile kills the command.
    """
    code, output, _ = _run(command, environment, given, subprocess.STDOUT)
    return code, output


def run_apart(command: Sequence[str | Path], given: str) -> tuple[int, str, str]:
    """The same, with exit code, stdout and stderr."""
    return _run(command, None, given, subprocess.PIPE)


def _run(
    command: Sequence[str | Path], environment: Mapping[str, str] | None, given: str | None, errors: int
) -> tuple[int, str, str]:
    process = None
    try:
        with signals_delayed():
            process = subprocess.Popen(
                command,
                env=os.environ | (environment or {}),
                stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        output, faults = process.communicate(given)
    except BaseException:
        if process:
            process.kill()
            process.wait()
        raise
    return process.returncode, output, faults or ""
