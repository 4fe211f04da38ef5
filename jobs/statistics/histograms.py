"""Histograms between two moments, their sums and quantiles. No Spark.

A spread is what was observed in a stretch of time: how many, their total, and the buckets, each with its bounds, so
that spreads of different bounds add up too.
"""

import math
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

Bounds = tuple[float, float]
LARGEST = sys.float_info.max


class Spread(NamedTuple):
    """Observations: buckets are (lower, upper] and how many fell into it."""

    observations: int
    total: float
    buckets: Mapping[Bounds, int]

    def packed(self) -> list[Any]:
        """As JSON; without a bound where it is infinite."""
        return [
            self.observations,
            self.total,
            [[_finite(low), _finite(high), n] for (low, high), n in self.buckets.items()],
        ]

    @classmethod
    def unpacked(cls, packed: list[Any]) -> "Spread":
        """The inverse of `packed`."""
        count, total, buckets = packed
        whole = {(-math.inf if low is None else low, math.inf if high is None else high): n for low, high, n in buckets}
        return cls(count, total, whole)


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def spread_of(histogram: Mapping[str, Any]) -> Spread:
    """A histogram of an event (`infra.contract.schemas.HISTOGRAM`); what isn't a finite number in it is passed over."""
    bounds = histogram.get("bounds") or []
    buckets: dict[Bounds, int] = {}
    if all(_is_number(bound) for bound in bounds):
        pairs = pairwise([-math.inf, *bounds, math.inf])
        buckets = {pair: n for pair, n in zip(pairs, histogram.get("counts") or (), strict=False) if n and n > 0}
    total = histogram.get("sum")
    return Spread(histogram.get("count") or 0, float(total or 0) if _is_number(total) else 0.0, buckets)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def since(before: Spread, now: Spread) -> Spread:
    """What was observed between two states of a cumulative histogram; all of it if it was reset."""
    buckets = {bounds: n - before.buckets.get(bounds, 0) for bounds, n in now.buckets.items()}
    gone = before.buckets.keys() - now.buckets.keys()
    if now.observations < before.observations or gone or any(n < 0 for n in buckets.values()):
        return now
    return Spread(
        now.observations - before.observations,
        now.total - before.total,
        {bounds: n for bounds, n in buckets.items() if n},
    )


def merged(spreads: Iterable[Spread]) -> Spread:
    """All observations; their order doesn't show."""
    parts = list(spreads)
    buckets: Counter[Bounds] = Counter()
    for part in parts:
        buckets.update(part.buckets)
    return Spread(sum(part.observations for part in parts), _sum([part.total for part in parts]), buckets)


def _sum(parts: list[float]) -> float:
    """Exact but for one rounding; where that is too large for a float, the largest."""
    try:
        return math.fsum(parts)
    except OverflowError:
        return math.copysign(LARGEST, sum(part / len(parts) for part in parts))


def quantile(spread: Spread, percent: int) -> float | None:
    """By linear interpolation within the bucket that holds the rank, as Prometheus does; None without buckets.

    An infinite bucket gives its finite bound; a first one with a positive bound begins at 0.
    """
    buckets = sorted(spread.buckets.items(), key=lambda item: (item[0][1], item[0][0]))
    total = sum(n for _, n in buckets)
    passed, rank = 0, (total * percent + 99) // 100
    for (low, high), n in buckets:
        passed += n
        if passed >= rank:
            return _within(low, high, (rank - passed + n) / n)
    return None


def _within(low: float, high: float, share: float) -> float | None:
    if math.isinf(high):
        return _finite(low)
    if math.isinf(low):
        low = min(high, 0.0)
    return low + (high - low) * share
