"""What was seen over the last hour of Kafka time, minute by minute, so that what is older can be forgotten."""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

REMEMBERED_MS = 3_600_000
_STEP_MS = 60_000

T = TypeVar("T")


class LastHour(Generic[T]):
    """Something for each minute of the last hour in which anything was seen; iterated over, the oldest comes first."""

    def __init__(self, new: Callable[[], T]) -> None:
        """`new` makes what a minute begins with."""
        self._new = new
        self._minutes: deque[tuple[int, T]] = deque()  # number, what was seen in it

    def at(self, timestamp_ms: int) -> T:
        """What was seen in the minute of this Kafka timestamp, or in the newest one if that is later."""
        number = timestamp_ms // _STEP_MS
        if not self._minutes or self._minutes[-1][0] < number:
            self._minutes.append((number, self._new()))
        newest, seen = self._minutes[-1]
        while self._minutes[0][0] < newest - REMEMBERED_MS // _STEP_MS:
            self._minutes.popleft()
        return seen

    def __iter__(self) -> Iterator[T]:
        return (seen for _, seen in self._minutes)
