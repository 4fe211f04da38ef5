"""Spark's offset log: for each micro-batch, the offsets up to which each source of the query is read.

It is the folder `offsets` of a checkpoint, with a file a batch. An entry, in version 2 with named sources, is a line
with the version, a line of metadata, and for each source a line `name:{"topic":{"partition":offset}}`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from infra.contract.offsets import Offsets, from_nested, to_nested


@dataclass(frozen=True)
class OffsetLogEntry:
    """The plan of one micro-batch; all sources are Kafka's."""

    version: str
    metadata: str
    sources: Mapping[str, Offsets]  # by name

    @classmethod
    def parse(cls, text: str) -> "OffsetLogEntry":
        """Read an entry."""
        version, metadata, *lines = text.splitlines()
        named = (line.split(":", 1) for line in lines)
        return cls(version, metadata, {name: from_nested(orjson.loads(offsets)) for name, offsets in named})

    def format(self) -> str:
        """The text that `parse` reads."""
        return "\n".join([self.version, self.metadata, *(_line(*source) for source in self.sources.items())])

    def offsets(self) -> Offsets:
        """Where the batch ends, over all sources."""
        return {partition: offset for found in self.sources.values() for partition, offset in found.items()}


def _line(name: str, offsets: Offsets) -> str:
    return f"{name}:{orjson.dumps(to_nested(offsets), option=orjson.OPT_NON_STR_KEYS).decode()}"
