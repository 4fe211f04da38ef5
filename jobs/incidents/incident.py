"""An incident: novelties that belong together, from its start to its end."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from jobs.incidents.causes import SECOND, Cause, Group, rank
from jobs.incidents.dependencies import Name
from jobs.incidents.member import Key, Member, suspect

Record = dict[str, Any]

JOIN = 120 * SECOND  # so long after its newest novelty started an incident takes others
LONGEST = 900 * SECOND  # and so long after its first one
JOIN_WINDOWS, LONGEST_WINDOWS = 2, 15  # or so many windows by which machines are judged, if these are longer
LONGEST_WINDOW = 300 * SECOND  # longer ones count as this: they say little of when something began
STATE_TTL = 86_400 * SECOND  # an incident without a record of its novelties for so long is over
CAUSES = 5  # that a record names
MEMBERS = 20


@dataclass(eq=False)
class Incident:
    """Novelties that share a cause, in the order in which they came."""

    id: str
    since_unix_nano: int
    newest: int  # when its newest novelty started
    updated: int  # the time of the newest record of its novelties
    members: list[Member] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._index()

    def _index(self) -> None:
        self._by_novelty = {member.novelty: member for member in self.members}
        self._open = sum(member.is_open for member in self.members)
        self._keys: set[Key] = set()
        self._names: set[Name] = set()
        self._needs: set[Name] = set()
        for member in self.members:
            self._relate(member)

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
        """Whether a novelty belongs to it: in its time, and related to one of its own by place or dependency."""
        longest = max(LONGEST, LONGEST_WINDOWS * min(member.window, LONGEST_WINDOW))
        if time >= min(self.newest + _joinable(member), self.since_unix_nano + longest):
            return False
        is_near = not self._keys.isdisjoint(member.keys())
        return is_near or not (self._names.isdisjoint(member.needs) and self._needs.isdisjoint(member.names))

    def add(self, member: Member, time: int) -> None:
        self.members.append(member)
        self._by_novelty[member.novelty] = member
        self._open += member.is_open
        self._relate(member)
        self.newest = self.updated = time

    def absorb(self, other: "Incident") -> None:
        """Take all of another incident's novelties: it turned out that both are one."""
        self.members = sorted([*self.members, *other.members], key=lambda one: (one.since_unix_nano, one.novelty))
        self.since_unix_nano = min(self.since_unix_nano, other.since_unix_nano)
        self.newest, self.updated = max(self.newest, other.newest), max(self.updated, other.updated)
        self._index()

    def _relate(self, member: Member) -> None:
        self._keys.update(member.keys())
        self._names |= member.names
        self._needs |= member.needs

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
        self._relate(member)
        self.updated = novelty["time_unix_nano"]
        return bool(changed)

    @property
    def due(self) -> int:
        """When it is over, as far as is known."""
        if self._open:
            return self.updated + STATE_TTL
        return max(self.updated, self.newest + max(map(_joinable, self.members)))

    @property
    def machines(self) -> list[list[Member]]:
        """The novelties of each machine; those affected first come first, of the same time the loudest."""
        of_machine: dict[str, list[Member]] = {}
        for member in sorted(self.members, key=lambda one: (one.since_unix_nano, -one.score, one.machine, one.novelty)):
            of_machine.setdefault(member.machine, []).append(member)
        return list(of_machine.values())

    def causes(self) -> list[Cause]:
        """All machines, and all groups that two or more of them share, the likeliest cause first."""
        machines = self.machines
        suspects = [suspect(members) for members in machines]
        fleet = max(sum(self._sizes("machines", "").values()), len(machines))
        return rank(suspects, self._groups(machines), fleet)

    def _groups(self, machines: list[list[Member]]) -> Iterator[Group]:
        """What two or more affected machines share, how many of them, and how many there are."""
        shared = Counter((kind, name) for members in machines for kind, name in members[0].places.items())
        for (kind, name), affected in shared.items():
            if affected > 1:
                yield Group(kind, name, affected, sum(self._sizes(kind, name).values()))

    def _sizes(self, kind: str, name: str) -> dict[int, int]:
        """How many machines there are of a group, by shard: as the newest novelty of each shard says."""
        return {
            member.shard: member.peers.get(kind, 0)
            for member in self.members
            if not name or member.places.get(kind) == name
        }

    def record(self, phase: str, time: int, merged_into: str | None = None) -> Record:
        """As JSON of schemas.INCIDENTS."""
        machines, causes = self.machines, self.causes()
        strongest = max(self.members, key=lambda member: member.score)
        record = {
            "id": self.id,
            "phase": phase,
            "time_unix_nano": time,
            "since_unix_nano": self.since_unix_nano,
            "machines": len(machines),
            "novelties": len(self.members),
            "verdicts": sorted({member.verdict for member in self.members}),
            "score": strongest.score,
            "causes": [cause.shown() for cause in causes[:CAUSES]],
            "members": [members[0].shown() for members in machines[:MEMBERS]],
            "text": self._text(machines, causes[0]),
        }
        if merged_into is None:
            return record
        return {**record, "merged_into": merged_into, "text": f"a part of incident {merged_into}: {record['text']}"}

    @staticmethod
    def _text(machines: list[list[Member]], cause: Cause) -> str:
        first = machines[0][0].text
        if len(machines) == 1:
            return first
        return f"{len(machines)} machines, likely because of {cause.text()}; first: {first}"


def _joinable(member: Member) -> int:
    """For how long after a novelty, ns, another one may join it."""
    return max(JOIN, JOIN_WINDOWS * min(member.window, LONGEST_WINDOW))
