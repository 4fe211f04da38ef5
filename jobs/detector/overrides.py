"""What operators have said of a shard's novelties: rules that suppress some, and what is normal after all."""

from collections.abc import Iterable, Mapping
from typing import Any

from infra.contract.sharding import Mine
from jobs.detector.novelties import Novelty
from jobs.detector.rules import Rule, is_pattern

MARGIN = 0.1  # what was called normal is so a little beyond the value itself: by this part of its deviation


class OperatorOverrides:
    """The overrides of one shard; rows and machines are the shard's numbers."""

    def __init__(self, packed: Mapping[str, Any]) -> None:
        """`packed` is what the method of that name gave; nothing in a new shard."""
        self.rules = {name: Rule(**fields) for name, fields in packed.get("rules", ())}
        self.normal: dict[int, tuple[float, float]] = {row: (low, high) for row, low, high in packed.get("normal", ())}
        self.calm: dict[int, float] = dict(packed.get("calm", ()))  # joint scores of machines
        self.gaps: dict[int, int] = dict(packed.get("gaps", ()))  # normal ones, in windows
        self.excused: set[int] = set(packed.get("excused", ()))  # machines whose present silence is no novelty

    def packed(self) -> dict[str, Any]:
        """The constructor's argument, as JSON."""
        return {
            "rules": [(name, rule.model_dump(exclude_none=True)) for name, rule in self.rules.items()],
            "normal": [(row, *interval) for row, interval in self.normal.items()],
            "calm": list(self.calm.items()),
            "gaps": list(self.gaps.items()),
            "excused": sorted(self.excused),
        }

    def suppresses(self, novelty: Novelty) -> bool:
        """Whether a rule says that this novelty isn't emitted."""
        return any(rule.matches(novelty) for rule in self.rules.values())

    def excuses(self, row: int, novelty: Novelty) -> bool:
        """Whether a novelty of a series isn't emitted: its value is normal, or a rule suppresses it."""
        return self.is_normal(row, novelty["observed"]) or self.suppresses(novelty)

    def excuses_values(self) -> bool:
        """Whether there may be a novelty of a series that is excused."""
        return bool(self.normal or self.rules)

    def call_normal(self, row: int, observed: float, expected: float) -> tuple[float, float]:
        """Take the values from the expected one to the observed one, and a little beyond, as normal; returns all."""
        reach = observed + MARGIN * (observed - expected)
        low, high = self.normal.get(row, (expected, expected))
        self.normal[row] = min(low, expected, reach), max(high, expected, reach)
        return self.normal[row]

    def is_normal(self, row: int, observed: float) -> bool:
        """Whether an operator has called such a value normal."""
        low, high = self.normal.get(row, (0.0, -1.0))
        return low <= observed <= high

    def call_calm(self, machine: int, joint: float) -> None:
        """Take windows of a machine with joint scores up to this one, and a little beyond, as normal."""
        self.calm[machine] = max(self.calm.get(machine, 0.0), (1.0 + MARGIN) * joint)

    def is_calm(self, machine: int, joint: float) -> bool:
        """Whether an operator has called such a window of a machine normal."""
        return joint <= self.calm.get(machine, 0.0)

    def call_gap_normal(self, machine: int, windows: int) -> None:
        """Take silences of up to so many windows as normal."""
        self.gaps[machine] = max(self.gaps.get(machine, 0), windows)

    def is_usual_gap(self, machine: int, gap: int) -> bool:
        """Whether an operator has called a silence of so many windows normal."""
        return machine in self.excused or gap <= self.gaps.get(machine, 0)

    def end_excuses(self, present: Iterable[int]) -> None:
        """These machines are no longer silent."""
        if self.excused:
            self.excused.difference_update(present)

    def retain_rules(self, mine: Mine) -> None:
        """Only the rules about patterns of machines, and those about one that is `mine`, are left."""
        self.rules = {name: rule for name, rule in self.rules.items() if is_pattern(rule.machine) or mine(rule.machine)}

    def renumber_machines(self, place: Mapping[int, int]) -> None:
        """Machines have new numbers, or are gone."""
        self.calm = {place[machine]: joint for machine, joint in self.calm.items() if machine in place}
        self.gaps = {place[machine]: gap for machine, gap in self.gaps.items() if machine in place}
        self.excused = {place[machine] for machine in self.excused if machine in place}

    def renumber(self, place: Mapping[int, int]) -> None:
        """Rows have new numbers, or are gone."""
        self.normal = {place[row]: interval for row, interval in self.normal.items() if row in place}
