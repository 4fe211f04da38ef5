"""Waiting for what other processes do."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def until(condition: Callable[[], T], seconds: float, otherwise: str, pause: float = 0.5) -> T:
    """What `condition` gives once it is true; TimeoutError after `seconds`."""
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{otherwise}: not within {seconds:.0f} s")
        time.sleep(pause)
    return found
