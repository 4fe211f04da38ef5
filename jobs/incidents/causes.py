"""Which machine, or which group of machines, is likely to be the cause of an incident, and what speaks for it.

Every weight is in nats and stands in the record with a sentence. A machine c whose deviation has the strength s(c)
weighs

    s(c)  +  1/2 sum of s(m) of those m that it explains  -  1/2 sum of s(m) of those that it doesn't

and c explains what depends on it, directly or by way of other affected machines, and began with it or after it; what
began long after it counts less, by half for each HALF_LIFE. Only what a dependency can cause counts of m: its errors
and durations, not its own resources (symptoms.py). If m itself is what others depend on and the most surprising thing
about it is the demand, then those who call it explain it. So a machine that waits for another one explains nothing that
the other doesn't, and is the likelier cause only if it deviates far more.

A group (hypervisor, site, tenant, role) weighs by a likelihood ratio: if k of its n machines are affected, and K of all
N, how much likelier are these counts by two rates (k of n, and K - k of N - n) than by one (Dunning 1993)? Less
ln(N / n), as there are so many groups of that size.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import log
from typing import Any

from jobs.incidents.dependencies import Name
from jobs.incidents.deviation import Deviation

SECOND = 10**9
HALF_LIFE = 60 * SECOND  # or the window by which the machines were judged, if that is longer
SHARE = 0.5  # of the others' strength that speaks for or against a machine
MOST_SUSPECTS = 200  # machines that are weighed, the strongest ones; so an incident of a whole site costs no more
MOST_NAMED = 3  # in a sentence


@dataclass(frozen=True)
class Suspect:
    """An affected machine, as the novelties of an incident show it."""

    machine: str
    since: int  # unix ns: end of the first window that was strange
    window: int  # ns: the length of that window
    deviation: Deviation
    names: frozenset[Name]  # that it goes by
    needs: frozenset[Name]

    @property
    def began(self) -> int:
        """The earliest time at which it can have begun."""
        return self.since - max(self.window, 1)


@dataclass(frozen=True)
class Reason:
    """A piece of evidence for a cause, or against it."""

    evidence: str  # deviation | dependants | delay | dependencies | unrelated | share | rarity
    weight: float  # nats
    text: str


@dataclass(frozen=True)
class Cause:
    """A machine or a group of machines, and by how much the affected ones speak for it."""

    kind: str
    name: str
    affected: int  # of a machine: itself and those that it explains
    machines: int  # in the group, as far as is known
    because: tuple[Reason, ...]

    @property
    def likelihood(self) -> float:
        """The sum of the weights. Rounded, as mathematical libraries differ in the last digits."""
        return round(sum(reason.weight for reason in self.because), 3)

    def shown(self) -> dict[str, Any]:
        """As JSON of schemas.CAUSE."""
        return {
            "kind": self.kind,
            "name": self.name,
            "likelihood": self.likelihood,
            "affected": self.affected,
            "machines": self.machines,
            "because": [asdict(reason) for reason in self.because],
        }

    def text(self) -> str:
        """For a sentence."""
        if self.kind != "machine":
            return f"{self.kind} {self.name} ({self.affected} of its {self.machines} machines)"
        others = self.affected - 1
        return f"machine {self.name}" + (f", on which {others} of the others {_verb(others)}" if others else "")


@dataclass(frozen=True)
class Group:
    """Machines that share a place: how many of them are affected, and how many there are."""

    kind: str
    name: str
    affected: int
    machines: int


def rank(suspects: Sequence[Suspect], groups: Iterable[Group], fleet: int) -> list[Cause]:
    """All causes, the likeliest first; `fleet` is how many machines there are, as far as is known."""
    causes = machine_causes(suspects) + [_group_cause(group, len(suspects), fleet) for group in groups]
    # Of equal ones the smallest group: it says the most.
    return sorted(causes, key=lambda cause: (-cause.likelihood, cause.machines, cause.kind, cause.name))


def machine_causes(suspects: Sequence[Suspect]) -> list[Cause]:
    """Each of the strongest machines as a cause, in no order."""
    strongest = sorted(suspects, key=lambda one: (-one.deviation.strength, one.machine))[:MOST_SUSPECTS]
    explained = _explained(strongest)
    reached = [_reachable(explained, at) for at in range(len(strongest))]
    return [_machine_cause(strongest, at, reached) for at in range(len(strongest))]


def log_likelihood_ratio(affected: int, of: int, affected_elsewhere: int, of_elsewhere: int) -> float:
    """By how much two binomial rates explain the affected machines better than one (Dunning 1993); 0 if fewer here."""
    everywhere = affected + affected_elsewhere, of + of_elsewhere
    if affected * of_elsewhere <= affected_elsewhere * of:
        return 0.0
    return (
        _log_likelihood(affected, of) + _log_likelihood(affected_elsewhere, of_elsewhere) - _log_likelihood(*everywhere)
    )


def _log_likelihood(k: int, n: int) -> float:
    return sum(count * log(count / n) for count in (k, n - k) if count)


def _group_cause(group: Group, affected: int, fleet: int) -> Cause:
    fleet = max(fleet, affected)
    size = min(max(group.machines, group.affected), fleet)
    elsewhere = affected - group.affected
    of_elsewhere = max(fleet - size, elsewhere)
    ratio = log_likelihood_ratio(group.affected, size, elsewhere, of_elsewhere)
    share = f"{group.affected} of its {size} machines are affected, of others {elsewhere} of {of_elsewhere}"
    rarity = f"it has {size} of {fleet} machines: there are many such groups"
    reasons = _reasons(("share", ratio, share), ("rarity", -log(fleet / size), rarity))
    return Cause(group.kind, group.name, group.affected, size, reasons)


def _explained(suspects: Sequence[Suspect]) -> dict[int, list[int]]:
    """By number of a suspect those that it explains directly."""
    by_name: dict[Name, list[int]] = defaultdict(list)
    for at, one in enumerate(suspects):
        for name in one.names:
            by_name[name].append(at)
    explained: dict[int, list[int]] = {at: [] for at in range(len(suspects))}
    for at, caller in enumerate(suspects):
        needed = sorted({other for name in caller.needs for other in by_name.get(name, ()) if other != at})
        for callee in needed:
            cause, effect = (at, callee) if suspects[callee].deviation.is_demand else (callee, at)
            if suspects[cause].began < suspects[effect].since:
                explained[cause].append(effect)
    return explained


def _reachable(explained: Mapping[int, Sequence[int]], start: int) -> set[int]:
    seen, left = {start}, [start]
    while left:
        new = [one for one in explained[left.pop()] if one not in seen]
        seen.update(new)
        left += new
    return seen - {start}


def _machine_cause(suspects: Sequence[Suspect], at: int, reached: Sequence[set[int]]) -> Cause:
    suspect = suspects[at]
    dependants, delays, lost = 0.0, 0.0, 0.0
    for number in sorted(reached[at]):
        inherited = suspects[number].deviation.passed_on
        late = inherited * (1.0 - _fading(suspect, suspects[number]))
        dependants, delays = dependants + inherited, delays + late
        lost += suspects[number].deviation.strength - inherited
    behind = [one for number, one in enumerate(suspects) if at in reached[number] and number not in reached[at]]
    others = [
        one
        for number, one in enumerate(suspects)
        if number != at and number not in reached[at] and at not in reached[number]
    ]
    reasons = _reasons(
        ("deviation", suspect.deviation.strength, suspect.deviation.text),
        ("dependants", SHARE * dependants, f"{_named(suspects, reached[at])} {_verb(len(reached[at]))} on it"),
        ("delay", -2 * SHARE * delays, "what depends on it began later than it"),
        ("dependencies", -SHARE * _strength(behind), f"it depends on {_listed(behind)}, and so may only wait"),
        ("unrelated", -SHARE * (_strength(others) + lost), _unrelated(others)),
    )
    count = 1 + len(reached[at])
    return Cause("machine", suspect.machine, count, count, reasons)


def _fading(cause: Suspect, effect: Suspect) -> float:
    """What is left of the evidence after the time from a cause to its effect."""
    lag = max(effect.since - cause.since, 0)
    return float(0.5 ** (lag / max(HALF_LIFE, cause.window, effect.window)))


def _strength(suspects: Iterable[Suspect]) -> float:
    return sum(one.deviation.strength for one in suspects)


def _unrelated(others: Sequence[Suspect]) -> str:
    if not others:
        return "what depends on it is strange in its own resources, too"
    return f"affected without depending on it: {_listed(others)}"


def _named(suspects: Sequence[Suspect], numbers: Iterable[int]) -> str:
    return _listed([suspects[number] for number in numbers])


def _listed(suspects: Sequence[Suspect]) -> str:
    names = [one.machine for one in sorted(suspects, key=lambda one: (-one.deviation.strength, one.machine))]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _verb(count: int) -> str:
    return "depends" if count == 1 else "depend"


def _reasons(*found: tuple[str, float, str]) -> tuple[Reason, ...]:
    """Those that weigh anything."""
    rounded = ((evidence, round(weight, 3), text) for evidence, weight, text in found)
    return tuple(Reason(*one) for one in rounded if one[1])
