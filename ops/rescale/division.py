"""Which of the new partitions takes over what of an old one.

Partition p of N becomes p, p + N, p + 2N, … of a multiple of N: a key's partition among all of them leads back to the
one that it had. So what a partition held is only ever divided, by key, and nothing of two partitions comes together.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from connectors.kafka.partitioner import partition_of
from connectors.kafka.reader import object_of
from infra.contract.sharding import Mine, shard_key
from infra.contract.watermarks import is_watermark
from infra.errors import UserError


@dataclass(frozen=True)
class Division:
    """The division of each of `before` partitions into `parts`."""

    before: int
    parts: int

    @classmethod
    def into(cls, partitions: int, before: int) -> "Division":
        """Raises UserError unless so many are a multiple of those that there are."""
        parts, rest = divmod(partitions, before)
        if rest or parts < 2:
            raise UserError(
                f"--partitions {partitions}: there are {before}, and each is divided: use {2 * before}, {3 * before}, …"
            )
        return cls(before, parts)

    def part_of(self, key: str) -> int:
        """Which part of its partition has a key."""
        return partition_of(key.encode(), self.before * self.parts) // self.before

    def mine(self, part: int) -> Mine:
        """Whether a key belongs to this part."""
        return lambda key: self.part_of(key) == part

    def children(self, parent: int) -> list[int]:
        """The numbers of a partition's parts among all partitions."""
        return [parent + part * self.before for part in range(self.parts)]

    def takers(self, parent: int, value: bytes | None) -> list[int]:
        """The partitions that take over a record of a sharded topic.

        Watermarks are for all of a partition's machines, as may be an operator's control event. What no job can use
        becomes a dead letter of one part.
        """
        children = self.children(parent)
        record = object_of(value)
        if record is None:
            return children[:1]
        if is_watermark(record) or "control" in record or record.get("kind") == "control":
            return children
        return [children[self.part_of(_key_of(record))]]


def _key_of(record: Mapping[str, Any]) -> str:
    machine, inventory = record.get("machine"), record.get("inventory")
    # Anyone may write these topics: what is no text is refused by the job that reads it.
    return str(shard_key(str(machine), inventory if isinstance(inventory, dict) else None))
