"""The fold over one partition of `events`: what came is judged in the order of event time, once a watermark passed it.

Between two watermarks events come in any order, so they wait. When a watermark says that all before it have come, they
are taken sorted by time, machine and content. What the rules find is therefore a function of the events alone: neither
how the log is cut into batches nor in which order events came can show.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

import orjson

from infra.contract.sharding import Mine, shard_key
from jobs.rules.intake import Asked, Intake, Moment, Moments
from jobs.rules.rule import Finding, Observation, Record, Rule, Tracker
from jobs.runtime.packed_state import Parts, pack, unpack
from jobs.runtime.shard_state import Message, Output

_NOTHING: Record = {"watermark": 0, "inventories": [], "waiting": [], "machines": [], "fingerprints": {}}


class Machine:
    """What is kept of a machine: its newest facts, when it was last seen, and a tracker for each rule."""

    def __init__(self, inventory: str, seen: int, trackers: dict[str, Tracker]) -> None:
        self.inventory, self.seen, self.trackers = inventory, seen, trackers

    def take(self, moment: Moment, all_asked: Iterable[Asked], rules: Sequence[Rule]) -> Iterator[tuple[str, Finding]]:
        """Take what `rules` look at of one time; gives the ids of rules with what they found."""
        time, watching = moment.time, {rule.id: rule for rule in rules}
        for left in sorted(self.trackers.keys() - watching.keys()):
            yield from ((left, finding) for finding in self.trackers.pop(left).close(time))
        self.seen, self.inventory = time, moment.inventory
        asked: dict[str, list[Observation]] = {}
        for id_, observation in all_asked:
            asked.setdefault(id_, []).append(observation)
        for id_, rule in watching.items():
            if id_ in asked or rule.WATCHES_PRESENCE:
                tracker = self.trackers.get(id_) or self.trackers.setdefault(id_, rule.tracker())
                yield from ((id_, finding) for finding in tracker.take(time, asked.get(id_, [])))

    def advance(self, before: int) -> Iterator[tuple[str, Finding]]:
        """Every event before this time was taken; trackers that hold nothing go."""
        for id_, tracker in self.trackers.items():
            yield from ((id_, finding) for finding in tracker.advance(before))
        self.trackers = {id_: tracker for id_, tracker in self.trackers.items() if tracker.packed()}

    def evict(self, time: int) -> Iterator[tuple[str, Finding]]:
        """Its state's time to live ends: nothing that was found stays open."""
        yield from self.advance(time + 1)
        for id_, tracker in self.trackers.items():
            yield from ((id_, finding) for finding in tracker.close(time))
        self.trackers = {}


class RuleFold:
    """The state of a shard, unpacked."""

    def __init__(self, rules: Sequence[Rule], state_ttl: int, parts: Parts | None = None) -> None:
        """`state_ttl` in ns of event time. What a rule kept that is gone, or says something else now, is dropped."""
        self.rules = {rule.id: rule for rule in rules}
        self.state_ttl = state_ttl
        self.intake = Intake(rules)
        packed: dict[str, Any] = unpack(parts)[0] if parts else _NOTHING
        self.watermark: int = packed["watermark"]
        inventories: list[str] = packed["inventories"]
        same = {id_ for id_, known in packed["fingerprints"].items() if self._fingerprints().get(id_) == known}
        self.waiting: Moments = {
            Moment(time, machine, inventories[number]): _unpacked(asked, same)
            for time, machine, number, asked in packed["waiting"]
        }
        self.machines = {
            name: Machine(
                inventories[number],
                seen,
                {id_: self.rules[id_].tracker(one) for id_, one in trackers.items() if id_ in same},
            )
            for name, number, seen, trackers in packed["machines"]
        }

    def feed(self, messages: Iterable[Message]) -> tuple[list[Record], list[Output]]:
        """Take records of `events`; returns the records of `alerts` that watermarks make known, and dead letters."""
        before = self.watermark
        moments, self.watermark, rejected = self.intake.read(messages, before)
        for moment, asked in moments.items():
            self.waiting.setdefault(moment, []).extend(asked)
        return (list(self._advance()) if self.watermark > before else []), rejected

    def _advance(self) -> Iterator[Record]:
        due = sorted(moment for moment in self.waiting if moment.time < self.watermark)
        for _, moments in groupby(due, key=lambda one: (one.time, one.machine)):
            yield from self._take(list(moments))
        for name in sorted(self.machines):
            yield from self._pass(name)

    def _take(self, moments: Sequence[Moment]) -> Iterator[Record]:
        """What came of a machine at one time. Should records say different facts of it, the last in order counts."""
        asked = _in_order(one for moment in moments for one in self.waiting.pop(moment))
        moment = moments[-1]
        name, watching = moment.machine, self.intake.watching(moment.machine, moment.inventory)
        if (known := self.machines.get(name)) and moment.time > known.seen + self.state_ttl:
            yield from self._evict(name)
        if name not in self.machines and not watching:
            return
        machine = self.machines.setdefault(name, Machine(moment.inventory, moment.time, {}))
        yield from self._alerts(name, machine, machine.advance(moment.time))  # still with the facts of before
        yield from self._alerts(name, machine, machine.take(moment, asked, watching))

    def _pass(self, name: str) -> Iterator[Record]:
        machine = self.machines[name]
        if self.watermark > machine.seen + self.state_ttl:
            yield from self._evict(name)
            return
        yield from self._alerts(name, machine, machine.advance(self.watermark))
        if not machine.trackers:
            del self.machines[name]

    def _evict(self, name: str) -> Iterator[Record]:
        machine = self.machines.pop(name)
        yield from self._alerts(name, machine, machine.evict(machine.seen + self.state_ttl))

    def _alerts(self, name: str, machine: Machine, findings: Iterable[tuple[str, Finding]]) -> Iterator[Record]:
        for id_, finding in findings:
            yield self.rules[id_].alert(name, orjson.loads(machine.inventory), finding)

    def _fingerprints(self) -> dict[str, str]:
        return {id_: rule.fingerprint for id_, rule in self.rules.items()}

    def retain(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`. The key follows from what the newest event says of a machine."""
        newest = {name: one.inventory for name, one in self.machines.items()}
        newest |= {moment.machine: moment.inventory for moment in sorted(self.waiting)}
        kept = {name for name, inventory in newest.items() if mine(shard_key(name, orjson.loads(inventory)))}
        self.waiting = {moment: asked for moment, asked in self.waiting.items() if moment.machine in kept}
        self.machines = {name: machine for name, machine in self.machines.items() if name in kept}

    def dump(self) -> Parts:
        """The state as parts."""
        known = {moment.inventory for moment in self.waiting} | {one.inventory for one in self.machines.values()}
        number = {inventory: place for place, inventory in enumerate(sorted(known))}
        waiting = [
            (time, machine, number[inventory], [(id_, tuple(one)) for id_, one in _in_order(asked)])
            for (time, machine, inventory), asked in sorted(self.waiting.items(), key=lambda one: one[0])
        ]
        machines = [
            (name, number[one.inventory], one.seen, {id_: one.trackers[id_].packed() for id_ in sorted(one.trackers)})
            for name, one in sorted(self.machines.items())
        ]
        header = {
            "watermark": self.watermark,
            "inventories": list(number),
            "waiting": waiting,
            "machines": machines,
            "fingerprints": self._fingerprints(),
        }
        return pack(header, {})


def _in_order(asked: Iterable[Asked]) -> list[Asked]:
    """By content: the order in which events of one time came says nothing."""
    return sorted(asked, key=lambda one: (one[0], one[1].order))


def _unpacked(asked: Iterable[Any], rules: set[str]) -> list[Asked]:
    return [(id_, Observation(*fields)) for id_, fields in asked if id_ in rules]
