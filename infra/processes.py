"""Child processes that no signal can orphan."""

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
def undisturbed() -> Iterator[None]:
    """Hold signals back until the block's end.

    An exception that a handler raises between the fork of a child and the note of its pid would orphan the child.
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


def run(command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Run a command to its end: exit code and output (stdout and stderr). An exception kills it first."""
    process = None
    try:
        with undisturbed():
            process = subprocess.Popen(
                command,
                env=os.environ | (environment or {}),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
        output, _ = process.communicate()
    except BaseException:
        if process:
            process.kill()
            process.wait()
        raise
    return process.returncode, output
