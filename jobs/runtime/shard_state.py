"""A keyed fold without Spark: what goes into a shard's state, what comes out of it, and what the state can do.

A partition of a topic is a shard. Its state is opened from packed parts, fed with the new records of the partition in
the order of its log, and dumped again. The runtime (`jobs.runtime.fold`) decides when it does which.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from infra.contract.watermarks import watermark_value
from jobs.runtime.packed_state import Parts

PIECE_BYTES = 32 * 2**20  # of records, which take more while they are folded


@dataclass(frozen=True)
class Input:
    """The new records of a shard in the order of the log."""

    topic: str
    shard: int
    offsets: Sequence[int]
    values: Sequence[bytes]
    partitions: Sequence[int] = ()  # of each record, where several are folded together

    def part(self, begin: int, end: int) -> "Input":
        """Its records from `begin` to before `end`."""
        cut = slice(begin, end)
        return replace(self, offsets=self.offsets[cut], values=self.values[cut], partitions=self.partitions[cut])

    def in_pieces(self, piece_bytes: int = PIECE_BYTES) -> Iterator["Input"]:
        """The batch in pieces of about so many bytes, at least one.

        Spark bounds a batch by its records, but of a backlog each record of `events` has a thousand data points.
        """
        piece = np.cumsum([0, *map(len, self.values)])[:-1] // piece_bytes
        cuts = [0, *(np.flatnonzero(np.diff(piece)) + 1).tolist(), len(piece)]
        return (self.part(begin, end) for begin, end in pairwise(cuts))


@dataclass(frozen=True)
class Output:
    """A record to write: its key, JSON, event time, headers, and its topic if that isn't the fold's usual one."""

    key: str | None
    value: bytes
    time_unix_nano: int
    headers: tuple[tuple[str, bytes], ...] = ()
    topic: str | None = None

    @classmethod
    def of_watermark(cls, time_unix_nano: int) -> "Output":
        """The watermark record that says that no older record follows in this shard."""
        return cls(None, watermark_value(time_unix_nano), time_unix_nano)


class ShardState(Protocol):
    """The unpacked state of one shard.

    How the log is cut must not show: `feed(a + b)` gives what `feed(a)` and `feed(b)` give, and a state that is opened
    from what another dumped goes on as the other would, byte for byte.
    """

    def feed(self, batch: Input) -> list[Output]:
        """Take records, watermarks among them; returns what is to be written. May be called several times a batch."""

    def dump(self) -> Parts:
        """The state as parts. What has not changed since it was opened or dumped is best the same object."""


# Opens the state that another one dumped, or the empty state of a new shard.
Opener = Callable[[Parts | None], ShardState]
