"""Rules of operators: which novelties are suppressed."""

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

if TYPE_CHECKING:  # the mathematics behind it takes memory, which readers of rules don't need
    from jobs.detector.novelties import Novelty


def is_pattern(machine: str) -> bool:
    """Whether this is a glob, not a machine's name."""
    return any(mark in machine for mark in "*?[")


class Rule(BaseModel):
    """Suppresses the novelties that meet all that is given. Patterns are shell globs."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    machine: str = Field(default="*", min_length=1)
    series: str | None = Field(default=None, min_length=1)
    direction: Literal["above", "below"] | None = None
    size: float | None = Field(default=None, gt=0, allow_inf_nan=False)  # the deviation at most, in the series' unit

    @classmethod
    def of(cls, control: Mapping[str, Any]) -> Self:
        """The rule of a control event."""
        return cls(**{name: control[name] for name in cls.model_fields if name in control})

    @property
    def id(self) -> str:
        """Derived from what it says: the same rule, given twice, is one."""
        return hashlib.blake2b(self.model_dump_json().encode(), digest_size=4).hexdigest()

    def matches(self, novelty: "Novelty") -> bool:
        """Whether this novelty is suppressed. A rule about values is none about silence or what is new."""
        return (
            fnmatchcase(novelty["machine"], self.machine)
            and (self.series is None or fnmatchcase(novelty.get("series", ""), self.series))
            and (not (self.direction or self.size) or self._is_about(novelty))
        )

    def _is_about(self, novelty: "Novelty") -> bool:
        if novelty["verdict"] not in ("anomaly", "state_change") or novelty.get("kind") == "machine":
            return False
        deviation = novelty["observed"] - novelty["expected"]
        side = "above" if deviation > 0 else "below"
        return self.direction in (None, side) and (self.size is None or abs(deviation) <= self.size)
