"""A novelty as a member of an incident."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from infra.contract.inventory import WORKLOAD, places
from jobs.incidents.causes import SECOND, Suspect
from jobs.incidents.dependencies import Name, goes_by, needs
from jobs.incidents.deviation import VANISHED, Deviation

Record = dict[str, Any]
Key = tuple[Any, ...]  # of two members that have one in common, one may have caused the other

GONE = "gone"


@dataclass
class Member:
    """A novelty: as its newest record has it, with its greatest score."""

    novelty: str
    machine: str
    verdict: str
    since_unix_nano: int
    score: float
    text: str
    shard: int
    places: dict[str, str]  # group -> the one that the machine is in
    peers: dict[str, int]  # how many machines of its shard are in these, and in all
    series: str | None = None
    is_open: bool = True
    # The states of earlier versions have none of these.
    workload: str | None = None
    depends_on: list[str] = field(default_factory=list)
    window: int = 0  # ns: the length of the windows that showed it
    strength: float = 0.0  # this and the following: Deviation
    passed_on: float = 0.0
    is_demand: bool = False
    evidence: str = ""

    @classmethod
    def of(cls, shard: int, novelty: Record) -> "Member":
        """A novelty that starts, or one that is over with its first record: a machine that is gone."""
        names = ("machine", "verdict", "since_unix_nano", "score", "text")
        facts = {name: novelty[name] for name in names} | {"series": novelty.get("series")}
        inventory, deviation = novelty.get("inventory") or {}, Deviation.of(novelty)
        return cls(
            novelty["id"],
            shard=shard,
            places=places(novelty["machine"], inventory),
            peers=novelty.get("peers", {}),
            is_open=novelty["phase"] != "end",
            workload=inventory.get(WORKLOAD),
            depends_on=novelty.get("depends_on") or [],
            window=round(novelty.get("window_seconds", 0.0) * SECOND),
            strength=deviation.strength,
            passed_on=deviation.passed_on,
            is_demand=deviation.is_demand,
            evidence=deviation.text,
            **facts,
        )

    def packed(self) -> Record:
        """The constructor's arguments, as JSON."""
        return asdict(self)

    @property
    def deviation(self) -> Deviation:
        """By how much its machine deviates."""
        return Deviation(self.strength, self.passed_on, self.is_demand, self.evidence or self.text)

    @property
    def names(self) -> frozenset[Name]:
        """The names that its machine goes by."""
        return goes_by(self.machine, self.workload, self.places)

    @property
    def needs(self) -> frozenset[Name]:
        """The names of what its machine depends on."""
        return needs(self.depends_on, self.places)

    def keys(self) -> Iterator[Key]:
        """What relates it to others: its machine, hypervisor (which is one of its guests), or tenant and role.

        Machines that vanish are related by their site, or where none is known of either; those that are retired always.
        """
        yield "machine", self.machine
        yield "hypervisor", self.places["hypervisor"]
        if {"tenant", "role"} <= self.places.keys():
            yield "role", self.places["tenant"], self.places["role"]
        if self.verdict in VANISHED:
            yield "vanished", self.places.get("site")
        if self.verdict == GONE:
            yield (GONE,)

    def shown(self) -> Record:
        """As JSON of schemas.MEMBER."""
        names = ("novelty", "machine", "verdict", "series", "since_unix_nano", "score")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def suspect(members: list[Member]) -> Suspect:
    """A machine by its novelties in an incident: the first one says since when it deviates, the strongest how far."""
    first, strongest = members[0], max(members, key=lambda one: one.strength)
    deviation = Deviation(
        strongest.strength,
        max(one.passed_on for one in members),
        first.is_demand,
        strongest.deviation.text,
    )
    newest = members[-1]
    return Suspect(first.machine, first.since_unix_nano, first.window, deviation, newest.names, newest.needs)
