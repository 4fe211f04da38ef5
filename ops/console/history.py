"""What the chain's lags and rates were in the last hour, kept in memory while the console runs."""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

PERIOD_SECONDS = 10.0
KEPT_SECONDS = 3_600.0
POINTS = 60  # that are shown of the hour
RATE_SECONDS = 60.0  # over which a rate is taken

Rows = Iterable[Mapping[str, Any]]


class Look(NamedTuple):
    """What was seen of a query: None what wasn't to be had."""

    time: float  # monotonic
    lag: int | None
    read: float | None  # rows since its process began


class History:
    """Looks at the chain each ten seconds, in a thread of its own."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: dict[str, deque[Look]] = {}
        self._lock = threading.Lock()

    def start(self, look: Callable[[], Rows]) -> None:
        """Look until the process ends; `look` gives the rows of the chain's view."""
        threading.Thread(target=self._run, args=(look,), name="history", daemon=True).start()

    def _run(self, look: Callable[[], Rows]) -> None:
        while True:
            self.note(look())
            time.sleep(PERIOD_SECONDS)

    def note(self, rows: Rows) -> None:
        """Keep what was seen just now."""
        now = self._clock()
        for row in rows:
            read = (row["metrics"] or {}).get("input_rows")
            with self._lock:
                seen = self._seen.setdefault(row["query"], deque(maxlen=int(KEPT_SECONDS / PERIOD_SECONDS)))
                seen.append(Look(now, row["lag"], read))

    def of(self, query: str) -> dict[str, Any]:
        """Of a query: its lag in the last hour in sixty steps, the newest last, and rows a second now."""
        with self._lock:
            seen = list(self._seen.get(query, ()))
        return {"lags": self._lags(seen), "rate": _rate(seen)}

    def _lags(self, seen: list[Look]) -> list[int | None]:
        step, now = KEPT_SECONDS / POINTS, self._clock()
        lags: list[int | None] = [None] * POINTS
        for one in seen:
            place = POINTS - 1 - int((now - one.time) / step)
            if place >= 0 and one.lag is not None:
                lags[place] = max(one.lag, lags[place] or 0)  # the worst of a step
        return lags


def _rate(seen: list[Look]) -> float | None:
    """Rows a second between the newest look and the last one that is a minute older; None of a process that is new."""
    read = [one for one in seen if one.read is not None]
    if len(read) < 2:
        return None
    newest = read[-1]
    oldest = next(one for one in read if newest.time - one.time <= RATE_SECONDS)
    if newest.time <= oldest.time or newest.read is None or oldest.read is None or newest.read < oldest.read:
        return None
    return (newest.read - oldest.read) / (newest.time - oldest.time)
