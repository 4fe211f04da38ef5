"""How strongly a novelty's machine deviates: the evidence that a single novelty gives."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import hypot, log1p
from typing import Any

from infra.contract.shares import whole_of
from jobs.incidents.symptoms import Symptom, symptom_of

Record = Mapping[str, Any]

QUANTILE = 2.576  # half a 99 % interval of a normal distribution, in standard deviations
LEAST_SPREAD = 0.01  # of the expected value: however quiet a series was, smaller changes of it say little
MOST = 1e4  # a deviation beyond says no more
# The deviation of what falls from its level to nothing, a machine that is silent, or comes from nothing: errors that
# there never were. No spread is known to measure it by.
FROM_OR_TO_NOTHING = 1.0 / LEAST_SPREAD
VANISHED = ("silence", "gone")  # verdicts of machines that send nothing any more


@dataclass(frozen=True)
class Deviation:
    """The strongest deviation among a novelty's series; a strength is ln(1 + deviation)."""

    strength: float
    passed_on: float  # the strength of its symptoms that a dependency can have caused; 0 without such
    is_demand: bool  # the most surprising series is what others ask of the machine
    text: str  # a sentence for a person

    @classmethod
    def of(cls, novelty: Record) -> "Deviation":
        """That of a record of `novelties`."""
        seen = list(_seen(novelty))
        if not seen:
            return _without_values(novelty)
        sizes = [_size(one) for one in seen]
        at = max(range(len(seen)), key=lambda number: (sizes[number], -number))
        symptoms = [_symptom(novelty, one) for one in seen]
        inherited = (size for size, symptom in zip(sizes, symptoms, strict=True) if symptom != Symptom.RESOURCE)
        return cls(
            _strength(sizes[at]),
            _strength(max(inherited, default=0.0)),
            symptoms[0] == Symptom.DEMAND,
            _text(seen[at], sizes[at]),
        )


def _seen(novelty: Record) -> Iterator[Record]:
    """The series with what was observed and expected, the most surprising first."""
    for one in novelty.get("contributors") or (novelty,):
        if one.get("series") and None not in (one.get(name) for name in ("observed", "expected", "expected_high")):
            yield one


def _size(seen: Record) -> float:
    """How many times the usual spread the observed value is off the expected one.

    Of a share that succeeds what is missing of it is compared.
    """
    whole = whole_of(seen["series"], seen.get("unit")) or 0.0
    expected, off = abs(whole - seen["expected"]), abs(seen["observed"] - seen["expected"])
    spread = hypot((seen["expected_high"] - seen.get("expected_low", 0.0)) / 2 / QUANTILE, LEAST_SPREAD * expected)
    return float(min(off / spread, MOST)) if spread > 0 else FROM_OR_TO_NOTHING * (off > 0)


def _strength(size: float) -> float:
    return round(log1p(size), 6)  # mathematical libraries differ in the last digits


def _symptom(novelty: Record, seen: Record) -> Symptom:
    return Symptom.SERVICE if novelty.get("kind") == "log" else symptom_of(seen["series"])


def _text(seen: Record, size: float) -> str:
    more = "more than " if size >= MOST else ""
    return (
        f"{seen['series']} is {seen['observed']:.4g}, expected {seen['expected']:.4g}: "
        f"{more}{size:.3g} times as far off as is usual"
    )


def _without_values(novelty: Record) -> Deviation:
    """Of a silence, or of something new, whose score stands for the deviation."""
    size = FROM_OR_TO_NOTHING if novelty["verdict"] in VANISHED else max(min(float(novelty["score"]), MOST), 0.0)
    return Deviation(_strength(size), _strength(size), False, str(novelty["text"]))
