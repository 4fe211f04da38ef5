"""What the Python decoders of OTLP's two encodings share."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from connectors.decoders.identity import IDENTITIES, Identity
from connectors.decoders.records import series

Entry = tuple[str, str | None]

TEMPORALITIES: Mapping[str | None, str] = {"1": "delta", "2": "cumulative"}
_LARGEST_DOUBLE = 1.7976931348623157e308


def as_map(pairs: Sequence[Entry]) -> dict[str, str | None]:
    """Entries as a map; of a key that stands twice, the first counts."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else dict(reversed(pairs))


def machine_of(resource: Mapping[str, str | None]) -> str | None:
    """The machine that a resource names (identity.py); null if it names none."""
    found = _found(resource)
    if found is None:
        return None
    name, identity = found
    within = (resource.get(key) for key in identity.within)
    return "/".join([*(part for part in within if part and part != "-"), name])


def identity_of(resource: Mapping[str, str | None], machine: str | None) -> tuple[Entry, ...]:
    """The attributes that distinguish a machine's services, as a part of their series."""
    found = _found(resource)
    keys = found[1].series if found else ()
    return tuple([(key, resource[key]) for key in keys if resource.get(key) not in (None, machine)])


def _found(resource: Mapping[str, str | None]) -> tuple[str, Identity] | None:
    """What kind of machine a resource is, and its own name."""
    for identity in IDENTITIES:
        for key in identity.keys:
            name = resource.get(key)
            if name and name != "-":
                return name, identity
    return None


@lru_cache(maxsize=65_536)
def labels(name: str, own: tuple[Entry, ...], identity: tuple[Entry, ...]) -> tuple[str, dict[str, str | None]]:
    """The series of a data point and its attributes; both are the same at every scrape, and the dict is shared."""
    return series(name, own + identity), as_map(own)


def mean(count: int | None, total: float | None) -> float | None:
    """Of a histogram's or summary's observations; 0 if there were none."""
    if count == 0:
        return 0.0
    return None if count is None or total is None else total / count


def exponential(
    scale: float, zero: int, offsets: Sequence[float], counts: Sequence[Sequence[int]]
) -> dict[str, list[float] | list[int]]:
    """Bounds and counts of an exponential histogram; `offsets` and `counts` are those of (negative, positive).

    Bucket i of `positive` is (base^(offset+i), base^(offset+i+1)], base = 2^(2^-scale) (OTLP); `negative`
    mirrors it; the zero bucket takes all between the two.
    """
    exponent = _power_of_two(-scale)
    below, above = (
        [_power_of_two(exponent * (offset + i)) for i in range(len(side))]
        for offset, side in zip(offsets, counts, strict=True)
    )
    return {
        "bounds": [-bound for bound in reversed(below)] + above,
        "counts": [*reversed(counts[0]), zero, *counts[1]],
    }


def _power_of_two(exponent: float) -> float:
    """2^exponent, at most the largest double."""
    return math.exp2(exponent) if exponent < 1024 else _LARGEST_DOUBLE
