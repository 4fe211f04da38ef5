"""The names of the indices, which say what is in them: kind, generation, window, span of event time, part.

    kappa-statistics-live.1m.2026-09-21.1d.2      windows of a minute that ended on this day: the second index of them
    kappa-novelties-v2.2026-09-14.30d.1           novelties that began in the 30 days from then on

All indices of a kind and generation have the alias that stands before the first dot.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from infra.contract.indices import Lifecycle
from infra.contract.topics import format_duration, parse_duration

HOUR_MILLI = 3_600_000
_NAME = re.compile(
    r"(?P<alias>[a-z0-9-]+)(\.(?P<group>[a-z0-9]+))?\.(?P<start>\d{4}-\d\d-\d\d(t\d\d)?)\.(?P<period>\d+[hd])\.(?P<part>\d+)"
)


def index_of(kind: str, generation: str) -> str:
    """The alias of all indices that have a generation's documents of one kind."""
    return f"kappa-{kind}-{generation}"


def anchor_of(alias: str) -> str:
    """The name of the index without documents that is always there: other indices get the aliases that it has."""
    return f"{alias}.anchor"


@dataclass(frozen=True)
class IndexName:
    """An index with the documents of `group` whose time, in ms, is from `start` to before `end`."""

    alias: str
    group: str  # the name of a lifecycle
    start: int
    end: int
    part: int = 1

    @classmethod
    def parse(cls, name: str) -> "IndexName | None":
        """Read what `str` writes; None for any other name."""
        found = _NAME.fullmatch(name)
        if found is None:
            return None
        form = "%Y-%m-%dt%H" if "t" in found["start"] else "%Y-%m-%d"
        try:
            start = int(datetime.strptime(found["start"], form).replace(tzinfo=UTC).timestamp() * 1000)
        except ValueError:
            return None
        period = _milli(parse_duration(found["period"]))
        return cls(found["alias"], found["group"] or "", start, start + period, int(found["part"]))

    @classmethod
    def first(cls, alias: str, lifecycle: Lifecycle, time: int) -> "IndexName":
        """The first index for documents of a time, in ms."""
        period = _milli(lifecycle.period)
        start = time // period * period
        return cls(alias, lifecycle.name, start, start + period)

    def following(self) -> "IndexName":
        """The one that takes what this one has no room for."""
        return replace(self, part=self.part + 1)

    def __str__(self) -> str:
        start = datetime.fromtimestamp(self.start / 1000, UTC)
        period = timedelta(milliseconds=self.end - self.start)
        form = "%Y-%m-%d" if self.start % (24 * HOUR_MILLI) == 0 else "%Y-%m-%dt%H"
        parts = [self.alias, self.group, f"{start:{form}}", format_duration(period), str(self.part)]
        return ".".join(filter(None, parts))

    def covers(self, time: int) -> bool:
        """Whether a document of this time, in ms, may be in it."""
        return self.start <= time < self.end


def covering(names: Iterable[IndexName], group: str, time: int) -> tuple[IndexName, ...]:
    """The indices in which a document of a group may be; the last one takes new ones."""
    found = [name for name in names if name.group == group and name.covers(time)]
    return tuple(sorted(found, key=lambda name: (name.part, name.start, name.end)))


def is_expired(name: IndexName, lifecycle: Lifecycle, names: Iterable[IndexName]) -> bool:
    """Whether all that an index may have is older than its retention, counted back from the newest index `names`."""
    newest = max((one.start for one in names), default=name.start)
    return name.end + _milli(lifecycle.retention) <= newest


def _milli(duration: timedelta) -> int:
    return duration // timedelta(milliseconds=1)
