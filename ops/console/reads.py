"""Reads that are shared: a source is asked once for all pages that are open, and a slow one holds up no page."""

import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from dataclasses import dataclass
from typing import Any, TypeVar

import structlog
from prometheus_client import Counter, Histogram

T = TypeVar("T")

READ_SECONDS = Histogram("kappa_console_read_seconds", "Duration of a read from a source", ("source",))
FAILURES = Counter("kappa_console_failed_reads", "Reads from a source that failed or took too long", ("source",))
LONGEST_REASON = 300  # characters
MOST_WAITING = 16  # threads that wait for one source

_log = structlog.get_logger(__name__)


class SourceDown(Exception):
    """A source can't be read now; the views that need it say so, and the others go on."""

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"{source}: {reason}")
        self.source, self.reason = source, reason


@dataclass
class _Read:
    """A read that was begun, and whether what it reads may have changed since."""

    begun: float
    future: Future[Any]
    is_old: bool = False


class SharedReads:
    """Runs the reads of one source in threads of its own; equal questions within `fresh_seconds` share an answer."""

    def __init__(self, source: str, patience_seconds: float, fresh_seconds: float) -> None:
        self._source, self._patience, self._fresh = source, patience_seconds, fresh_seconds
        self._waiting = threading.BoundedSemaphore(MOST_WAITING)
        self._lock = threading.Lock()
        self._reason: str | None = None  # why it is down
        self._reads: dict[Hashable, _Read] = {}

    def read(self, question: Hashable, ask: Callable[[], T]) -> T:
        """The answer that `ask` gives. Raises SourceDown if it fails, or takes longer than the patience."""
        read = self._begun(question, ask)
        try:
            # One that has already waited in vain for another page isn't waited for again.
            answer: T = read.future.result(max(0.0, read.begun + self._patience - time.monotonic()))
        except NotInTime:
            reason = f"has not answered within {self._patience:g} s"
        except Exception as error:
            reason = _in_one_line(error)
        else:
            self._note(None)
            return answer
        FAILURES.labels(self._source).inc()
        self._note(reason)
        raise SourceDown(self._source, reason)

    def forget(self) -> None:
        """What was read, or is being read, isn't shown again: something has changed."""
        with self._lock:
            for read in self._reads.values():
                read.is_old = True

    def _note(self, reason: str | None) -> None:
        """Log that the source is down, or up again, once."""
        before, self._reason = self._reason, reason
        if reason and not before:
            _log.warning("source is down", source=self._source, error=reason)
        elif before and not reason:
            _log.info("source answers again", source=self._source)

    def _begun(self, question: Hashable, ask: Callable[[], T]) -> _Read:
        with self._lock:
            known = self._reads.get(question)
            if known is not None and self._is_shared(known):
                return known
            if not self._waiting.acquire(blocking=False):
                raise SourceDown(self._source, f"{MOST_WAITING} reads are waiting for it")
            self._drop_old()
            read = self._reads[question] = _Read(time.monotonic(), Future())
        # A daemon: the process ends without waiting for a server that hangs.
        threading.Thread(target=self._answer, args=(read.future, ask), name=f"read-{self._source}", daemon=True).start()
        return read

    def _is_shared(self, read: _Read) -> bool:
        age = time.monotonic() - read.begun
        if read.future.done():
            return not read.is_old and age < self._fresh
        # A read that hangs is waited for again, not begun again.
        return not read.is_old or age > self._patience

    def _answer(self, future: Future[T], ask: Callable[[], T]) -> None:
        try:
            with READ_SECONDS.labels(self._source).time():
                found = ask()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(found)
        finally:
            self._waiting.release()

    def _drop_old(self) -> None:
        """Let go of answers that nobody will be given: that of a machine with many series is megabytes."""
        self._reads = {key: read for key, read in self._reads.items() if self._is_shared(read)}


def _in_one_line(error: Exception) -> str:
    reason = getattr(error, "reason", None) or error  # of an URLError
    return " ".join(str(reason).split())[:LONGEST_REASON] or type(error).__name__
