"""A keyed fold without Spark: what goes into a shard's state, what comes out of it, and what the state can do.

A partition of a topic is a shard. Its state is opened from packed parts, fed with the new records of the partition in
the order of its log, and dumped again. The runtime (`jobs.runtime.fold`) decides when it does which.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, pairwise, repeat
from typing import Any, NamedTuple, Protocol

import numpy as np
import orjson

from infra.contract import dead_letters
from infra.contract.dead_letters import InvalidRecordError, Source, dead_letter
from infra.contract.offsets import Partition
from infra.contract.sharding import Mine
from infra.contract.watermarks import watermark_value
from jobs.runtime.packed_state import Parts

PIECE_BYTES = 32 * 2**20  # of records, which take more while they are folded
_COLUMNS = ("offsets", "values", "partitions", "timestamps")
LATEST_MILLI = 7_258_118_400_000  # the year 2200: no record has a later time, so that sums of times fit into 64 bits


Rejected = tuple["Message", InvalidRecordError]  # a record that can't be used, and why


class Message(NamedTuple):
    """A record as it stands in a partition. The value may be absent, as anyone may write that to Kafka."""

    source: Source
    value: bytes | None


@dataclass(frozen=True)
class Input:
    """The new records of a shard in the order of the log."""

    topic: str
    shard: int
    offsets: Sequence[int]
    values: Sequence[bytes | None]
    partitions: Sequence[int] = ()  # of each record; by default the shard's
    timestamps: Sequence[int] = ()  # Kafka's, in ms, of each record; by default later than any time

    def messages(self) -> Iterator[Message]:
        """Its records, one by one."""
        timestamps, partitions = self.timestamps or repeat(LATEST_MILLI), self.partitions or repeat(self.shard)
        places = zip(partitions, self.offsets, timestamps, strict=False)
        for (partition, offset, timestamp), value in zip(places, self.values, strict=True):
            yield Message(Source(self.topic, partition, offset, timestamp), value)

    def part(self, begin: int, end: int) -> "Input":
        """Its records from `begin` to before `end`."""
        columns = {name: getattr(self, name)[begin:end] for name in _COLUMNS}
        return replace(self, **columns)

    def feed(self, state: "ShardState") -> list["Output"]:
        """Feed its records to a state, piece by piece; returns what it has given."""
        return [output for piece in self.in_pieces() for output in state.feed(piece)] if self.offsets else []

    def parted(self, written: Mapping[Partition, int]) -> tuple["Input", "Input"]:
        """Its records before these offsets of the topic's partitions, and those after them."""
        if not written:
            return self.part(0, 0), self
        partitions = self.partitions or [self.shard] * len(self.offsets)
        bounds = [written.get((self.topic, partition), 0) for partition in partitions]
        before = np.asarray(self.offsets, dtype=np.int64) < np.asarray(bounds, dtype=np.int64)
        return self._chosen(before), self._chosen(~before)

    def _chosen(self, mask: np.ndarray) -> "Input":
        columns: dict[str, Any] = {name: list(compress(getattr(self, name), mask)) for name in _COLUMNS}
        return replace(self, **columns)

    def in_pieces(self, piece_bytes: int = PIECE_BYTES) -> Iterator["Input"]:
        """The batch in pieces of about so many bytes, at least one.

        Spark bounds a batch by its records, but of a backlog each record of `events` has a thousand data points.
        """
        piece = np.cumsum([0, *(len(value or b"") for value in self.values)])[:-1] // piece_bytes
        cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(piece)]
        return (self.part(begin, end) for begin, end in pairwise(cuts))


@dataclass(frozen=True)
class Output:
    """A record to write.

    Attributes:
        key: its key; None for a watermark record.
        value: its JSON.
        time_unix_nano: its event time, which becomes its Kafka timestamp.
        headers: its headers.
        topic: the key of its topic in the map, if that isn't the fold's usual one.
        by_key: whether its key decides the partition; else it goes into the shard's own.
        note: as what it is counted: a dead letter's code, `late`.
        origin: the site whose event time it shows, if that is known.
    """

    key: str | None
    value: bytes
    time_unix_nano: int
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str | None = None
    by_key: bool = False
    note: str | None = None
    origin: str | None = None

    @classmethod
    def of_watermark(cls, time_unix_nano: int) -> "Output":
        """The watermark record that says that no older record follows in this shard."""
        return cls(None, watermark_value(time_unix_nano), time_unix_nano)

    @classmethod
    def of_rejected(cls, stage: str, message: Message, error: InvalidRecordError) -> "Output":
        """The dead letter of a record that the fold of the job `stage` can't use."""
        source = message.source
        value = orjson.dumps(dead_letter(stage, source, error, message.value))
        time = source.timestamp_unix_milli * 1_000_000
        return cls(source.name, value, time, topic=dead_letters.TOPIC, by_key=True, note=error.code)


class ShardState(Protocol):
    """The unpacked state of one shard.

    No record makes it raise: each is checked before anything of it is taken, and may become a dead letter.

    How the log is cut must not show: `feed(a + b)` gives what `feed(a)` and `feed(b)` give, and a state that is opened
    from what another dumped goes on as the other would, byte for byte.
    """

    def feed(self, batch: Input) -> list[Output]:
        """Take records, watermarks among them; returns what is to be written. May be called several times a batch."""

    def dump(self) -> Parts:
        """The state as parts. What has not changed since it was opened or dumped is best the same object."""

    def retain(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`, as though their records had never come.

        What is for all machines stays. So one shard is divided into several: each opens what it has dumped.
        """


# Opens the state that another one dumped, or the empty state of a new shard.
Opener = Callable[[Parts | None], ShardState]
