"""Reads that don't need each other, at once."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any


def together(**calls: Callable[[], Any]) -> dict[str, Any]:
    """What each of these gives, by name. Raises what the first of them raises."""
    with ThreadPoolExecutor(len(calls)) as threads:
        begun = {name: threads.submit(call) for name, call in calls.items()}
        return {name: future.result() for name, future in begun.items()}
