"""How fast something is done."""

import time
from collections.abc import Callable

WINDOW_SECONDS = 60.0


class Pace:
    """The throughput of the last minute, by what is done so far each time that somebody asks."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: list[tuple[float, int]] = []

    def rate(self, done: int) -> float | None:
        """So many a second, with `done` so far; None at the first time, and while nothing is done."""
        now = self._clock()
        self._seen = [(at, count) for at, count in self._seen if now - at < WINDOW_SECONDS] + [(now, done)]
        (first, before), (last, after) = self._seen[0], self._seen[-1]
        return (after - before) / (last - first) if last > first and after > before else None
