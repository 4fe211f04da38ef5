"""The fold over all partitions of `novelties`: what began together, in event time, is one incident.

Partitions are read at any pace. So a novelty waits until every partition's watermark has passed its time, and then all
that wait are taken in the order of their times: batches don't show in what is emitted.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import orjson

from infra.contract.watermarks import watermark_of
from jobs.incidents.incident import Incident, Member, Record
from jobs.runtime.packed_state import Parts, check_names, pack, unpack

PHASES = ("start", "update", "end")
Placed = tuple[int, bytes]  # partition and JSON of a record of `novelties`


def fold(state: Parts | None, records: Iterable[Placed], partitions: int) -> tuple[Parts, list[Record]]:
    """Fold records of `novelties`, watermarks among them, into the state; returns it and the records of `incidents`.

    Of each partition they come in the order of its log; `partitions` is how many there are.
    """
    incidents = Incidents(partitions, state)
    emitted = incidents.feed(records)
    return incidents.dump(), emitted


class Incidents:
    """The incidents that are open, the novelties that wait, and how far each partition has come."""

    def __init__(self, partitions: int, state: Parts | None = None) -> None:
        packed: Record = {"watermarks": [0] * partitions, "waiting": [], "open": []}
        if state:
            packed = check_names(unpack(state)[0], packed, "incidents")
        self.watermarks: list[int] = packed["watermarks"]
        self.waiting: list[tuple[int, Record]] = [(shard, novelty) for shard, novelty in packed["waiting"]]
        self.open = [Incident.unpacked(incident) for incident in packed["open"]]  # oldest first

    def dump(self) -> Parts:
        waiting = sorted(self.waiting, key=_place_in_time)
        return pack(
            {"watermarks": self.watermarks, "waiting": waiting, "open": [one.packed() for one in self.open]}, {}
        )

    def feed(self, records: Iterable[Placed]) -> list[Record]:
        """Take records; returns those of incidents up to the slowest partition's watermark."""
        for partition, value in records:
            record = orjson.loads(value)
            if (watermark := watermark_of(record)) is not None:
                self.watermarks[partition] = max(self.watermarks[partition], watermark)
            else:
                self.waiting.append((partition, record))
        return list(self._advance(min(self.watermarks)))

    def _advance(self, watermark: int) -> Iterator[Record]:
        due = sorted((one for one in self.waiting if one[1]["time_unix_nano"] < watermark), key=_place_in_time)
        self.waiting = [one for one in self.waiting if one[1]["time_unix_nano"] >= watermark]
        for time, together in groupby(due, key=lambda one: int(one[1]["time_unix_nano"])):
            yield from self._close(time)
            yield from self._take(time, list(together))
        yield from self._close(watermark - 1)

    def _close(self, time: int) -> Iterator[Record]:
        """End the incidents that are over by `time`."""
        over = sorted((one for one in self.open if one.due <= time), key=lambda one: (one.due, one.id))
        self.open = [one for one in self.open if one.due > time]
        for incident in over:
            yield incident.record("end", incident.due)

    def _take(self, time: int, novelties: list[tuple[int, Record]]) -> Iterator[Record]:
        """All novelties of one time; each incident that they change is emitted once."""
        started: set[str] = set()
        changed: set[str] = set()
        for shard, novelty in novelties:
            if novelty["phase"] == "start":
                incident, is_new = self._incident_of(Member.of(shard, novelty), time)
                (started if is_new else changed).add(incident.id)
            else:
                changed |= {one.id for one in self.open if one.update(novelty)}
        for incident in self.open:
            if incident.id in started | changed:
                yield incident.record("start" if incident.id in started else "update", time)

    def _incident_of(self, member: Member, time: int) -> tuple[Incident, bool]:
        """The oldest incident that takes this novelty, or a new one; and whether it is new."""
        known = next((one for one in self.open if one.takes(member, time)), None)
        incident = known or Incident.of(member, time)
        incident.add(member, time)
        if known is None:
            self.open.append(incident)
        return incident, known is None


def _place_in_time(one: tuple[int, Record]) -> tuple[Any, ...]:
    novelty = one[1]
    # Novelties end before others start at the same time.
    return (
        novelty["time_unix_nano"],
        -PHASES.index(novelty["phase"]),
        novelty["machine"],
        novelty["id"],
    )
