"""Results of windows, as they become records of the topic `statistics`."""

from hashlib import blake2b
from typing import Any, NamedTuple

import orjson

from jobs.statistics.catalogue import Catalogue
from jobs.statistics.panes import Fact
from jobs.statistics.window_statistics import Columns

Record = dict[str, Any]


class WindowResult(NamedTuple):
    """A record, its machine's facts, and the end of the pane that made it known: an early result covers so far."""

    time: int
    id: str
    machine: str
    fact: Fact
    window: Record
    statistics: Columns
    early: bool = False

    def json(self) -> bytes:
        """Of the schema `statistics`."""
        whole: Record = {
            "id": self.id,
            "machine": self.machine,
            "inventory": self.fact.inventory,
            "window": self.window,
            "statistics": self.statistics,
        }
        if self.early:
            whole |= {"provisional": True, "until_unix_nano": self.time}
        return orjson.dumps(whole, option=orjson.OPT_SERIALIZE_NUMPY)


def bounds(start: int, end: int) -> Record:
    """The fields of a window that say where it lies."""
    return {"start_unix_nano": start, "end_unix_nano": end}


def series_digest(catalogue: Catalogue, number: int) -> str:
    """Tells a machine's series apart, in ids of bounded length."""
    series = catalogue.series[number]
    return blake2b(f"{series.series}\x1f{series.unit or ''}".encode(), digest_size=8).hexdigest()
