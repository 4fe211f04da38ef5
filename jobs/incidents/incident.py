"""An incident: novelties that share a place and a time, and what is likely to be their cause."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from math import log
from typing import Any, NamedTuple

from infra.contract.inventory import places

Record = dict[str, Any]

SECOND = 10**9
JOIN = 120 * SECOND  # so long after its newest novelty started an incident takes others
LONGEST = 900 * SECOND  # and so long after its first one
STATE_TTL = 86_400 * SECOND  # an incident without a record of its novelties for so long is over
CAUSES = 5  # that a record names
GONE = "gone"
VANISHED = ("silence", GONE)  # verdicts of machines that send nothing any more
MEMBERS = 20


@dataclass
class Member:
    """A novelty of an incident: as its newest record has it, with its greatest score."""

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

    @classmethod
    def of(cls, shard: int, novelty: Record) -> "Member":
        """A novelty that starts, or one that is over with its first record: a machine that is gone."""
        names = ("machine", "verdict", "since_unix_nano", "score", "text")
        facts = {name: novelty[name] for name in names} | {"series": novelty.get("series")}
        return cls(
            novelty["id"],
            shard=shard,
            places=places(novelty["machine"], novelty.get("inventory")),
            peers=novelty.get("peers", {}),
            is_open=novelty["phase"] != "end",
            **facts,
        )

    def shown(self) -> Record:
        """As JSON of schemas.MEMBER."""
        names = ("novelty", "machine", "verdict", "series", "since_unix_nano", "score")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class Cause(NamedTuple):
    """A group of machines, or a machine, and by how much the affected ones speak for it."""

    kind: str
    name: str
    likelihood: float  # ln of the likelihood ratio, less ln of how many such groups there are: none is likelier before
    affected: int
    machines: int  # in the group, as far as is known

    def text(self) -> str:
        """For a sentence."""
        of = "" if self.kind == "machine" else f" ({self.affected} of its {self.machines} machines)"
        return f"{self.kind} {self.name}{of}"


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


@dataclass
class Incident:
    """Novelties that share a cause, in the order in which they came."""

    id: str
    since_unix_nano: int
    newest: int  # when its newest novelty started
    updated: int  # the time of the newest record of its novelties
    members: list[Member] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._by_novelty = {member.novelty: member for member in self.members}
        self._open = sum(member.is_open for member in self.members)

    @classmethod
    def of(cls, member: Member, time: int) -> "Incident":
        """The incident that a novelty starts."""
        identity = hashlib.blake2b(f"incident\x1f{member.novelty}".encode(), digest_size=16).hexdigest()
        return cls(identity, member.since_unix_nano, time, time)

    @classmethod
    def unpacked(cls, packed: Record) -> "Incident":
        return cls(**{**packed, "members": [Member(**member) for member in packed["members"]]})

    def packed(self) -> Record:
        return asdict(self)

    def takes(self, member: Member, time: int) -> bool:
        """Whether a novelty belongs to it: in its time, on a machine, a hypervisor or a service of its own."""
        in_time = time < min(self.newest + JOIN, self.since_unix_nano + LONGEST)
        return in_time and any(_are_related(member, other) for other in self.members)

    def add(self, member: Member, time: int) -> None:
        self.members.append(member)
        self._by_novelty[member.novelty] = member
        self._open += member.is_open
        self.newest = self.updated = time

    def has(self, novelty: Record) -> bool:
        """Whether it is one of its novelties."""
        return novelty["id"] in self._by_novelty

    def update(self, novelty: Record) -> bool:
        """Take a later record of one of its novelties; whether its verdict changed."""
        member = self._by_novelty.get(novelty["id"])
        if member is None:
            return False
        changed, was_open = member.verdict != novelty["verdict"], member.is_open
        member.verdict, member.score = novelty["verdict"], max(member.score, novelty["score"])
        member.is_open = novelty["phase"] != "end"
        self._open += member.is_open - was_open
        self.updated = novelty["time_unix_nano"]
        return bool(changed)

    @property
    def due(self) -> int:
        """When it is over, as far as is known."""
        if self._open:
            return self.updated + STATE_TTL
        return max(self.updated, self.newest + JOIN)

    @property
    def machines(self) -> list[Member]:
        """Of each machine its first novelty, the loudest of the same time; those affected first come first."""
        first: dict[str, Member] = {}
        for member in sorted(self.members, key=lambda one: (one.since_unix_nano, -one.score, one.machine, one.novelty)):
            first.setdefault(member.machine, member)
        return list(first.values())

    def causes(self) -> list[Cause]:
        """The likeliest first: groups whose machines are affected more than the others, and the first machine."""
        machines = self.machines
        first = machines[0]
        named = [("machine", first.machine, 1, 1), *self._groups(machines)]
        total = max(sum(self._sizes("machines", "").values()), len(machines))
        found = []
        for kind, name, affected, of in named:
            size = min(max(of, affected), total)
            elsewhere, of_elsewhere = len(machines) - affected, max(total - size, len(machines) - affected)
            likelihood = log_likelihood_ratio(affected, size, elsewhere, of_elsewhere) - log(total / size)
            found.append(Cause(kind, name, likelihood, affected, size))
        # Of equal ones the smallest group: it says the most.
        return sorted(found, key=lambda cause: (-cause.likelihood, cause.machines, cause.kind, cause.name))[:CAUSES]

    def _groups(self, machines: list[Member]) -> Iterator[tuple[str, str, int, int]]:
        """What two or more affected machines share: kind, name, how many are affected, and of how many."""
        shared = Counter((kind, name) for member in machines for kind, name in member.places.items())
        for (kind, name), affected in shared.items():
            if affected > 1:
                yield kind, name, affected, sum(self._sizes(kind, name).values())

    def _sizes(self, kind: str, name: str) -> dict[int, int]:
        """How many machines there are of a group, by shard: as the newest novelty of each shard says."""
        return {
            member.shard: member.peers.get(kind, 0)
            for member in self.members
            if not name or member.places.get(kind) == name
        }

    def record(self, phase: str, time: int) -> Record:
        """As JSON of schemas.INCIDENTS."""
        machines, causes = self.machines, self.causes()
        strongest = max(self.members, key=lambda member: member.score)
        return {
            "id": self.id,
            "phase": phase,
            "time_unix_nano": time,
            "since_unix_nano": self.since_unix_nano,
            "machines": len(machines),
            "novelties": len(self.members),
            "verdicts": sorted({member.verdict for member in self.members}),
            "score": strongest.score,
            "causes": [cause._asdict() for cause in causes],
            "members": [member.shown() for member in machines[:MEMBERS]],
            "text": self._text(machines, causes[0]),
        }

    @staticmethod
    def _text(machines: list[Member], cause: Cause) -> str:
        first = machines[0].text
        if len(machines) == 1:
            return first
        return f"{len(machines)} machines, likely because of {cause.text()}; first: {first}"


def _are_related(one: Member, other: Member) -> bool:
    """The same hypervisor (or it and its guests), or the same role of the same tenant.

    Machines that vanish are related by their site, or where none is known of either; those that are retired always.
    """
    if one.verdict in VANISHED and other.verdict in VANISHED:
        is_decided = one.verdict == other.verdict == GONE
        if is_decided or one.places.get("site") == other.places.get("site"):
            return True
    same = {kind for kind, name in one.places.items() if other.places.get(kind) == name}
    return one.machine == other.machine or "hypervisor" in same or {"tenant", "role"} <= same
