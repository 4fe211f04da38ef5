"""A graceful stop of Spark queries: running micro-batches end, and no further one begins."""

import threading
import time
from collections.abc import Callable

from pyspark.sql import DataFrame

BatchFunction = Callable[[DataFrame, int], None]


class StoppedError(Exception):
    """Raised in a micro-batch that was planned after the signal to stop, so that Spark doesn't commit it."""


class Gate:
    """Every micro-batch passes it; once it is closed, further ones wait, so that a stop never interrupts one."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._released = threading.Event()
        self.held: set[str] = set()  # queries whose next batch waits here
        self._waited: dict[tuple[str, int], float] = {}  # how long a batch paused and rested, s
        self.failure: Exception | None = None

    def guard(
        self,
        query: str,
        write: BatchFunction,
        pause: Callable[[], float] = lambda: 0.0,
        rest: Callable[[float], float] = lambda _: 0.0,
    ) -> BatchFunction:
        """Wrap the function of `foreachBatch` so that it waits while the gate is closed.

        Before that it waits for the seconds that `pause` gives, and when it has written for those that `rest` gives for
        the seconds that it took; both end when the gate is closed.
        """

        def guarded(frame: DataFrame, batch_id: int) -> None:
            paused = self._wait(pause())
            if self._closing.is_set():
                self.held.add(query)
                self._released.wait()
                # To return would have Spark commit a batch that was not written.
                raise StoppedError("the job stops; this batch is left to its next start")
            began = time.monotonic()
            try:
                write(frame, batch_id)
            except Exception as error:
                self.failure = error  # Spark hands on only its text
                raise
            self._waited[query, batch_id] = paused + self._wait(rest(time.monotonic() - began))

        return guarded

    def waited(self, query: str, batch_id: int) -> float:
        """How many of the seconds of a batch it did nothing; can be asked once."""
        return self._waited.pop((query, batch_id), 0.0)

    def _wait(self, seconds: float) -> float:
        began = time.monotonic()
        self._closing.wait(seconds)
        return time.monotonic() - began

    def close(self) -> None:
        """Hold back the micro-batches that have not begun."""
        self._closing.set()

    def release(self) -> None:
        """Let the waiting micro-batches fail with StoppedError: stopping their query would wait for them for ever."""
        self._released.set()
