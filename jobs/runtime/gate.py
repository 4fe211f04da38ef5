"""A graceful stop of Spark queries: running micro-batches end, and no further one begins."""

import threading
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
        self.failure: Exception | None = None

    def guard(self, query: str, write: BatchFunction, pause: Callable[[], float] = lambda: 0.0) -> BatchFunction:
        """Wrap the function of `foreachBatch` so that it waits while the gate is closed.

        Before that it waits for the seconds that `pause` gives, or until the gate is closed.
        """

        def guarded(frame: DataFrame, batch_id: int) -> None:
            self._closing.wait(pause())
            if self._closing.is_set():
                self.held.add(query)
                self._released.wait()
                # To return would have Spark commit a batch that was not written.
                raise StoppedError("the job stops; this batch is left to its next start")
            try:
                write(frame, batch_id)
            except Exception as error:
                self.failure = error  # Spark hands on only its text
                raise

        return guarded

    def close(self) -> None:
        """Hold back the micro-batches that have not begun."""
        self._closing.set()

    def release(self) -> None:
        """Let the waiting micro-batches fail with StoppedError: stopping their query would wait for them for ever."""
        self._released.set()
