"""What a kind of windows is: how one is declared, what a declared window keeps in a shard, and what it emits.

Points are looked at pane by pane, a pane being the smallest tumbling window. When the watermark has passed the end of a
pane, it is shown to every declared window, in event time and whatever the batches: a window's results therefore can't
depend on how the log is cut.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from infra.contract.topics import in_nanoseconds, parse_duration
from jobs.statistics.catalogue import Catalogue
from jobs.statistics.emit import WindowResult
from jobs.statistics.panes import Facts, Panes, PaneSizes
from jobs.statistics.points import Points
from jobs.statistics.quantiles import Ints
from jobs.statistics.renumber import of_series
from jobs.statistics.rows import NANO
from jobs.statistics.sessions import Sessions

Arrays = dict[str, NDArray[Any]]
Columns = TypeVar("Columns", Points, Sessions)


def _nanoseconds(text: object) -> int:
    return text if isinstance(text, int) else in_nanoseconds(parse_duration(text))


def in_seconds(nanoseconds: int) -> str:
    """As a person writes it."""
    return f"{nanoseconds / NANO:g}s"


# Written as `30s` or `5m` by a person; a number is in ns.
Nanoseconds = Annotated[
    int, BeforeValidator(_nanoseconds), Field(gt=0), PlainSerializer(in_seconds, when_used="json")
]  # fmt: skip


class Window(BaseModel, ABC):
    """The declaration of a window; a subclass is a kind. Its fields are what a person may write in windows.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: str

    @property
    def pane_size(self) -> int | None:
        """The size in ns of the panes that larger windows may be put together from, if this one gives any."""
        return None

    def panes_needed(self, sizes: PaneSizes) -> dict[int, int]:
        """How far back, in ns, panes of which size must be kept for this window."""
        return {}

    def check(self, sizes: PaneSizes, state_ttl: int) -> None:
        """Raises ValueError if this window doesn't fit the panes that are declared, or the time to live of state."""

    @abstractmethod
    def opened(self, sizes: PaneSizes) -> "WindowState":
        """The state of this window in a new shard."""

    def __str__(self) -> str:
        """As a person would write it in one line, without what is left at its default of none."""
        return _shown(self.model_dump(mode="json", exclude_none=True))


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_shown(one)}' for name, one in value.items())}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    return str(value)


@dataclass(frozen=True)
class Closed:
    """A pane that ended at `end`, as every declared window sees it.

    `lines` are its log lines, with their severity as the value; `values` its values of gauges and rates; both by series
    and time. `panes` are those that windows need, this one among them. `facts` are the newest of each machine.
    `examples` is the newest line of each log series.
    """

    end: int
    start: int
    lines: Points
    values: Points
    panes: Panes
    catalogue: Catalogue
    facts: Facts
    examples: Mapping[int, str]


class WindowState:
    """What a declared window keeps in a shard from pane to pane. By default nothing, beside the panes it needs."""

    @property
    def open_until(self) -> int:
        """Until when time alone may change what this window emits: panes are shown to it until then, empty ones too."""
        return 0

    def emit(self, closed: Closed) -> Iterator[WindowResult]:
        """Take a pane; gives the results that it completes, and the early ones that are due."""
        raise NotImplementedError

    def pack(self) -> Arrays:
        """What is kept, as columns; their names don't depend on the data."""
        return {}

    def unpack(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `pack`; a new shard has no columns."""

    def evict(self, series: Ints) -> None:
        """Drop what waits for more of these series: their state has outlived its time."""

    def held(self) -> Ints:
        """The numbers of the series that must not be dropped yet."""
        return np.empty(0, np.int64)

    def retain(self, kept: Ints) -> None:
        """Only these series are left, ascending; their new numbers are their places in it."""


class RowsState(WindowState, Generic[Columns]):
    """Keeps rows, each of a series: a subclass says what they are, and only ever replaces them."""

    columns: ClassVar[type[Any]]

    def __init__(self) -> None:
        self.rows: Columns = self.columns.empty()

    def pack(self) -> Arrays:
        """A column for each field of the rows."""
        return {field.name: getattr(self.rows, field.name) for field in fields(self.rows)}

    def unpack(self, columns: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `pack`."""
        if columns:
            self.rows = self.columns(**columns)

    def retain(self, kept: Ints) -> None:
        """Only the rows of these series are left, under their new numbers."""
        self.rows = of_series(self.rows, kept)
