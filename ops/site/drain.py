"""Waits until a mirror has brought everything: until the last record of each partition is the same on both sides."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.kafka.admin import read_limits
from connectors.kafka.offsets import Log, latest_offsets
from infra.contract.offsets import Offsets, Partition
from infra.contract.topics import Topic
from infra.errors import UserError
from ops.savepoints import landmarks
from ops.savepoints.landmarks import Landmark

PAUSE_SECONDS = 2.0  # in which nobody may have written to the source
CLOCK = "message.timestamp.type"
SHOWN = 5  # names in an error


@dataclass(frozen=True)
class Drain:
    """A cluster that is left, and the one to which a mirror brings what it has.

    Attributes:
        source: the one that is left.
        target: where its records are brought to.
        topics: all that are brought.
        beside: names of topics at the source to which nobody may write any more either.
    """

    source: Log
    target: Log
    topics: Sequence[Topic]
    beside: Sequence[str] = ()

    def wait(self, patience: float, tell: Callable[[int], None]) -> None:
        """Return once the target has everything, and nobody writes to the source.

        `tell` gets the number of partitions that something is missing of. Raises UserError after `patience` seconds, or
        at once if the topics of both sides don't fit together.
        """
        self._check_topics()
        deadline, before = time.monotonic() + patience, Offsets()
        while True:
            written, before = self._written_since(before)
            left = self.missing()
            if not left and not written:
                return
            if time.monotonic() > deadline:
                raise UserError(self._why(left, written))
            tell(len(left))
            time.sleep(PAUSE_SECONDS)

    def missing(self) -> list[Partition]:
        """The partitions whose last record at the source isn't the last at the target, unless it is due for deletion.

        Where a segment ends, and so when a record is deleted, differs between the two.
        """
        here, there = self._last(self.source), self._last(self.target)
        kept = {place: mark for place, mark in here.items() if not self._is_expired(mark)}
        return [place for place, mark in kept.items() if place not in there or not there[place].is_same_record(mark)]

    def _last(self, kafka: Log) -> dict[Partition, Landmark]:
        return {mark.place: mark for mark in landmarks.take(kafka, [kafka.ends(self._names)])}

    def _is_expired(self, mark: Landmark) -> bool:
        (topic,) = (one for one in self.topics if one.name == mark.topic)
        age = time.time() - mark.timestamp_ms / 1000
        return topic.cleanup == "delete" and age > topic.retention.total_seconds()

    def _written_since(self, before: Offsets) -> tuple[set[str], Offsets]:
        """The topics that have grown, or have an open transaction, as a mirror that was killed leaves one; all ends."""
        committed = self.source.ends([*self._names, *self.beside])
        ends = latest_offsets(self.source.admin, committed)
        return {place[0] for place, end in ends.items() if end != before.get(place) or end != committed[place]}, ends

    def _check_topics(self) -> None:
        present = self.target.admin.list_topics(timeout=30).topics
        for name in self._names:
            if name not in present:
                raise UserError(f"topic {name!r} is not on {self.target.bootstrap}; make it there: kappa topics apply")
        if differs := set(self.source.partitions(self._names)) ^ set(self.target.partitions(self._names)):
            raise UserError(
                f"topic {min(differs)[0]!r}: has another number of partitions on {self.target.bootstrap} than on "
                f"{self.source.bootstrap}; give it the same on both"
            )
        for name, settings in read_limits(self.target.admin, self._names).topics.items():
            if settings[CLOCK] != "CreateTime":
                raise UserError(
                    f"topic {name!r}: has {CLOCK}={settings[CLOCK]} on {self.target.bootstrap}, so that mirrored "
                    "records lose their times; set it to CreateTime there and bring them anew: kappa site topics --all"
                )

    def _why(self, left: Sequence[Partition], written: set[str]) -> str:
        if written:
            return (
                f"{self.source.bootstrap}: still gets records of {_some(sorted(written))}; stop the jobs, the mirrors "
                "and the collectors that write there"
            )
        places = _some([f"{topic}/{number}" for topic, number in left])
        return (
            f"{self.target.bootstrap}: does not end with the last record that {self.source.bootstrap} has of {places}; "
            "does the mirror of everything run (kappa site mirror --all), and nothing else write there?"
        )

    @property
    def _names(self) -> list[str]:
        return [topic.name for topic in self.topics]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
