"""Metrics that say which share of something succeeds: of these what counts is how much is missing.

An availability of 99.9 % instead of 99.99 % is ten times as many failures, and hardly another level.
"""

import re
from functools import lru_cache

_SUCCEEDS = re.compile(r"availability|(?<!un)success", re.IGNORECASE)
_OF_A_HUNDRED = re.compile(r"percent|pct|%", re.IGNORECASE)
_OF_ONE = re.compile(r"ratio|availability", re.IGNORECASE)


@lru_cache(4096)
def whole_of(series: str, unit: str | None) -> float | None:
    """What a metric would be if everything succeeded, 100 or 1; None if it isn't such a share.

    Its name says so, without the labels in braces, and its unit or its name whether it is of a hundred or of one. What
    says neither is a number of successes.

    >>> whole_of("call.setup.success_rate{cell=7}", "%")
    100.0
    >>> whole_of("http.requests{outcome=success}", "1") is None
    True
    """
    name = series.partition("{")[0]
    if not _SUCCEEDS.search(name):
        return None
    if unit == "%" or _OF_A_HUNDRED.search(name):
        return 100.0
    return 1.0 if unit in (None, "", "1") and _OF_ONE.search(name) else None
