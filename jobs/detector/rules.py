"""What people have told the detector: rules by which novelties aren't told, and what is normal after all."""

import hashlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from jobs.detector.novelties import Novelty

MARGIN = 0.1  # what was called normal is so a little beyond the value itself: by this part of its deviation


class Rule(BaseModel):
    """Novelties that aren't told: those that meet all that is given. Patterns are shell globs."""

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

    def matches(self, novelty: Novelty) -> bool:
        """Whether this novelty isn't to be told. A rule about values is none about silence or what is new."""
        return (
            fnmatchcase(novelty["machine"], self.machine)
            and (self.series is None or fnmatchcase(novelty.get("series", ""), self.series))
            and (not (self.direction or self.size) or self._is_about(novelty))
        )

    def _is_about(self, novelty: Novelty) -> bool:
        if novelty["verdict"] not in ("anomaly", "state_change") or novelty.get("kind") == "machine":
            return False
        deviation = novelty["observed"] - novelty["expected"]
        side = "above" if deviation > 0 else "below"
        return self.direction in (None, side) and (self.size is None or abs(deviation) <= self.size)


class Orders:
    """What a shard was told. Rows and machines are the shard's numbers."""

    def __init__(self, packed: Mapping[str, Any]) -> None:
        self.rules = {name: Rule(**fields) for name, fields in packed.get("rules", ())}
        self.normal: dict[int, tuple[float, float]] = {row: (low, high) for row, low, high in packed.get("normal", ())}
        self.calm: dict[int, float] = dict(packed.get("calm", ()))  # joint scores of machines
        self.gaps: dict[int, int] = dict(packed.get("gaps", ()))  # normal ones, in windows
        self.excused: set[int] = set(packed.get("excused", ()))  # machines that are silent, which is no novelty

    def packed(self) -> dict[str, Any]:
        """Constructor's argument, as JSON."""
        return {
            "rules": [(name, rule.model_dump(exclude_none=True)) for name, rule in self.rules.items()],
            "normal": [(row, *interval) for row, interval in self.normal.items()],
            "calm": list(self.calm.items()),
            "gaps": list(self.gaps.items()),
            "excused": sorted(self.excused),
        }

    def forbid(self, novelty: Novelty) -> bool:
        """Whether a rule says that this novelty isn't told."""
        return any(rule.matches(novelty) for rule in self.rules.values())

    def call_normal(self, row: int, observed: float, expected: float) -> tuple[float, float]:
        """Take the values from the expected one to the observed one, and a little beyond, as normal; returns all."""
        reach = observed + MARGIN * (observed - expected)
        low, high = self.normal.get(row, (expected, expected))
        self.normal[row] = min(low, expected, reach), max(high, expected, reach)
        return self.normal[row]

    def is_normal(self, row: int, observed: float) -> bool:
        """Whether a person has called such a value normal."""
        low, high = self.normal.get(row, (0.0, -1.0))
        return low <= observed <= high

    def call_calm(self, machine: int, joint: float) -> None:
        """Take windows of a machine with joint scores up to this one, and a little beyond, as normal."""
        self.calm[machine] = max(self.calm.get(machine, 0.0), (1.0 + MARGIN) * joint)

    def is_calm(self, machine: int, joint: float) -> bool:
        """Whether a person has called such a window of a machine normal."""
        return joint <= self.calm.get(machine, 0.0)

    def is_usual_gap(self, machine: int, gap: int) -> bool:
        """Whether a person has called a silence of so many windows normal."""
        return machine in self.excused or gap <= self.gaps.get(machine, 0)

    def renumber(self, place: Mapping[int, int]) -> None:
        """Rows have new numbers, or are gone."""
        self.normal = {place[row]: interval for row, interval in self.normal.items() if row in place}
