"""The gate through which every micro-batch goes: it lets running batches end and the next ones not begin."""

import threading
from collections.abc import Callable

from pyspark.sql import DataFrame

BatchFunction = Callable[[DataFrame, int], None]


class StoppedError(Exception):
    """A batch that came after the signal to stop."""


class Gate:
    """Lets running batches end and the next ones not begin, so that a stop never cuts a batch."""

    def __init__(self) -> None:
        self._closing = threading.Event()
        self._released = threading.Event()
        self.held: set[str] = set()  # queries whose next batch waits here
        self.failure: Exception | None = None

    def guard(self, query: str, write: BatchFunction) -> BatchFunction:
        """`write`, but held back once the gate closes."""

        def guarded(frame: DataFrame, batch_id: int) -> None:
            if self._closing.is_set():
                self.held.add(query)
                self._released.wait()
                # Never return: Spark would commit a batch that nobody has written.
                raise StoppedError("the job stops; this batch is for its next start")
            try:
                write(frame, batch_id)
            except Exception as error:
                self.failure = error  # Spark would only hand on its text
                raise

        return guarded

    def close(self) -> None:
        """Hold back the batches that have not begun."""
        self._closing.set()

    def release(self) -> None:
        """Let the held batches fail: stopping their query would wait for them for ever."""
        self._released.set()
