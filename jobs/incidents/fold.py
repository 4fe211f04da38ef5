"""The fold over all partitions of `novelties`: what began together, in event time, is one incident.

Partitions are read at any pace. So a novelty waits until every partition's watermark has passed its time, and then all
that wait are taken in the order of their times: batches don't show in what is emitted.
"""

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from infra.contract.dead_letters import InvalidRecordError, Source
from infra.errors import UserError
from jobs.incidents.incident import Incident, Record
from jobs.incidents.intake import PHASES, check_novelty
from jobs.incidents.member import GONE, Member
from jobs.runtime.intake import parse, unexpected, watermark_in
from jobs.runtime.packed_state import Parts, check_names, pack, unpack
from jobs.runtime.shard_state import LATEST_MILLI, Message, Rejected

Placed = tuple[int, bytes]  # partition and JSON of a record of `novelties`


def fold(state: Parts | None, records: Iterable[Placed], partitions: int) -> tuple[Parts, list[Record]]:
    """Fold records of `novelties`, watermarks among them, into the state; returns it and the records of `incidents`.

    Of each partition they come in the order of its log; `partitions` is how many there are. Raises InvalidRecordError
    if one can't be used.
    """
    incidents = Incidents(partitions, state)
    messages = (Message(Source("novelties", partition, 0, LATEST_MILLI), value) for partition, value in records)
    emitted, rejected = incidents.feed(messages)
    for _, error in rejected:
        raise error
    return incidents.dump(), emitted


class Incidents:
    """The incidents that are open, the novelties that wait, and how far each partition has come."""

    def __init__(self, partitions: int, state: Parts | None = None) -> None:
        """Of a state with fewer partitions each is divided into several, which go on from its watermark.

        Raises UserError if the state is of another version, or of partitions that these don't come from.
        """
        packed: Record = {"watermarks": [0] * partitions, "waiting": [], "open": []}
        if state:
            packed = check_names(unpack(state)[0], packed, "incidents")
        self.watermarks = _of_partitions(packed["watermarks"], partitions)
        self.waiting: list[tuple[int, Record]] = [(shard, novelty) for shard, novelty in packed["waiting"]]
        self.open = [Incident.unpacked(incident) for incident in packed["open"]]  # oldest first

    def dump(self) -> Parts:
        waiting = sorted(self.waiting, key=_place_in_time)
        return pack(
            {"watermarks": self.watermarks, "waiting": waiting, "open": [one.packed() for one in self.open]}, {}
        )

    def feed(self, messages: Iterable[Message]) -> tuple[list[Record], list[Rejected]]:
        """Take records; returns those of incidents up to the slowest partition's watermark, and what can't be used."""
        rejected: list[Rejected] = []
        for message in messages:
            try:
                self._receive(message)
            except InvalidRecordError as error:
                rejected.append((message, error))
        return list(self._advance(min(self.watermarks))), rejected

    def _receive(self, message: Message) -> None:
        """Take one record; nothing of it is taken if this raises."""
        partition, record = message.source.partition, parse(message.value)
        if not 0 <= partition < len(self.watermarks):
            raise unexpected("partition", f"one of the {len(self.watermarks)} in the map of topics", partition)
        if (watermark := watermark_in(record, message)) is not None:
            self.watermarks[partition] = max(self.watermarks[partition], watermark)
        else:
            check_novelty(record, message, self.watermarks[partition])
            self.waiting.append((partition, record))

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
        absorbed: list[tuple[Incident, Incident]] = []
        for shard, novelty in novelties:
            if novelty["phase"] == "start" or self._is_only_record(novelty):
                member = Member.of(shard, novelty)
                incident, is_new, others = self._incident_of(member, time)
                (started if is_new else changed).add(incident.id)
                absorbed += [(other, incident) for other in others]
            else:
                changed |= {one.id for one in self.open if one.update(novelty)}
        for other, into in absorbed:
            if other.id not in started:  # else nobody has heard of it
                yield other.record("end", time, merged_into=into.id)
        for incident in self.open:
            if incident.id in started | changed:
                yield incident.record("start" if incident.id in started else "update", time)

    def _is_only_record(self, novelty: Record) -> bool:
        """Whether a machine is gone of which nothing was said before, as far as open incidents know."""
        is_gone = novelty["phase"] == "end" and novelty["verdict"] == GONE
        return is_gone and not any(incident.has(novelty) for incident in self.open)

    def _incident_of(self, member: Member, time: int) -> tuple[Incident, bool, list[Incident]]:
        """The oldest incident that takes this novelty, or a new one; whether it is new; and others that it absorbs.

        Those are the others that take the novelty, too: what belongs to each of them shows that they are one.
        """
        takers = [one for one in self.open if one.takes(member, time)]
        if not takers:
            self.open.append(Incident.of(member, time))
        oldest, *others = takers or self.open[-1:]
        oldest.add(member, time)
        for other in others:
            oldest.absorb(other)
            self.open.remove(other)
        return oldest, not takers, others


def _of_partitions(watermarks: list[int], partitions: int) -> list[int]:
    """The watermark of each of so many partitions: partition p of n was divided into p, p + n, p + 2n, and so on."""
    times, rest = divmod(partitions, len(watermarks))
    if rest:
        raise UserError(
            f"incidents: its checkpoint is of {len(watermarks)} partitions of novelties, now there are "
            f"{partitions}: let the topic have as many as before, or a multiple of that"
        )
    return watermarks * times


def _place_in_time(one: tuple[int, Record]) -> tuple[Any, ...]:
    novelty = one[1]
    # Novelties end before others start at the same time.
    return (
        novelty["time_unix_nano"],
        -PHASES.index(novelty["phase"]),
        novelty["machine"],
        novelty["id"],
    )
