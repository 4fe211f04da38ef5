"""Whether the jobs of this process get on: what `/healthz` and `/readyz` say.

That a query is active says little: a Python worker that is stopped, a call that never returns, leave it so for ever. So
progress is what moves in the log: the offsets that a query has committed. A thread of its own (lag.py) looks there.
"""

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from infra.contract.offsets import Offsets


@dataclass
class _Progress:
    """What is known of a query; times are those of the monotonic clock."""

    moved: float  # when it last got on, or had nothing to do
    positions: Offsets = field(default_factory=dict)
    lag: int | None = None  # None: not measured, or not measurable now
    is_ready: bool = False


class Health:
    """The progress of each query, and of each job without Spark, which counts as one query. For several threads."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._queries: dict[str, _Progress] = {}

    def watch(self, queries: Iterable[str]) -> None:
        """Begin to judge these queries, and no others."""
        with self._lock:
            self._queries = {query: _Progress(self._clock()) for query in queries}

    def beat(self, query: str) -> None:
        """Note that a query gets on, or waits for what isn't its own fault."""
        with self._lock:
            if query in self._queries:
                self._queries[query].moved = self._clock()

    def measured(self, query: str, positions: Offsets, lag: int) -> None:
        """Note the offsets that a query has committed, and how many records it has not read.

        Partitions whose leader doesn't answer are left out. That is no progress, and doesn't say that nothing waits.
        """
        with self._lock:
            one = self._queries[query]
            known = one.positions | positions
            has_moved = bool(one.positions) and known != one.positions
            has_nothing = not lag and positions.keys() == known.keys()
            if one.lag is None or has_moved or has_nothing:
                one.moved = self._clock()
            one.is_ready |= has_moved or has_nothing
            one.positions, one.lag = known, lag

    def not_measured(self, query: str) -> None:
        """Note that the broker can't say how far a query has come: then nobody can judge it."""
        with self._lock:
            self._queries[query].lag = None

    def quiet_seconds(self, query: str) -> float:
        """How long a query has not got on although there are records to read; 0 if nobody knows."""
        with self._lock:
            one = self._queries.get(query)
            return self._clock() - one.moved if one and one.lag else 0.0

    def stalled(self, seconds: float) -> str | None:
        """Which queries have not got on for so long, although there are records to read; None if all have."""
        with self._lock:
            now = self._clock()
            reasons = [
                f"{query}: no progress for {now - one.moved:.0f} s, {one.lag} records wait"
                for query, one in self._queries.items()
                if one.lag and now - one.moved >= seconds
            ]
        return "; ".join(reasons) or None

    def unready(self) -> str | None:
        """Which queries have neither committed a batch since they began nor found nothing to read; None if none."""
        with self._lock:
            waiting = [query for query, one in self._queries.items() if not one.is_ready]
        return f"no batch committed yet: {', '.join(waiting)}" if waiting else None


HEALTH = Health()  # of this process, as the metrics are
