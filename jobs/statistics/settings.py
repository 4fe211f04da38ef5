"""Which windows the statistics job tells of: read from one file, checked before anything starts."""

from collections import Counter
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.contract.topics import parse_duration
from infra.errors import UserError
from infra.settings import describe

DEFAULT_WINDOWS = Path(__file__).with_name("windows.yaml")
_MICROSECOND = timedelta(microseconds=1)


def _nanoseconds(text: object) -> int:
    return text if isinstance(text, int) else parse_duration(text) // _MICROSECOND * 1000


Nanoseconds = Annotated[int, BeforeValidator(_nanoseconds), Field(gt=0)]


class _Window(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Tumbling(_Window):
    """One window after the other."""

    kind: Literal["tumbling"]
    size: Nanoseconds
    early: Nanoseconds | None = None


class Sliding(_Window):
    """Windows of `size` that begin each `slide`."""

    kind: Literal["sliding"]
    size: Nanoseconds
    slide: Nanoseconds

    @model_validator(mode="after")
    def _covers(self) -> Self:
        if self.slide >= self.size:
            raise ValueError("a slide must be shorter than its size; equal ones are kind: tumbling")
        return self


class Session(_Window):
    """A burst of log lines of one template; it ends `gap` after its last line."""

    kind: Literal["session"]
    gap: Nanoseconds
    least: int = Field(10, ge=1)
    early: Nanoseconds | None = None


class Count(_Window):
    """Each `values` values of a series whose metric has one of `names`."""

    kind: Literal["count"]
    values: int = Field(ge=2, le=10_000)
    names: tuple[str, ...] = Field(min_length=1)

    def takes(self, name: str | None) -> bool:
        """Whether a metric of this name is counted."""
        return any(fnmatchcase(name or "", pattern) for pattern in self.names)


Window = Annotated[Tumbling | Sliding | Session | Count, Field(discriminator="kind")]


class Windows(BaseModel):
    """All windows, times in ns. Larger windows are put together from panes: smaller tumbling ones."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    windows: tuple[Window, ...]
    forget: Nanoseconds = 3600 * 1_000_000_000

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for declared, times in Counter(self.windows).items():
            if times > 1:
                raise ValueError(f"{_shown(declared)} is declared {times} times; once is enough")
        self._check_tumbling()
        self._check_sliding()
        for window in self.tumbling:
            _check_early(window, self.panes_of(window))
            if window.early and window.early >= window.size:
                raise ValueError(f"{_shown(window)}: early must be shorter than the window")
        for session in self.sessions:
            _check_early(session, self.pane)
        return self

    def _check_tumbling(self) -> None:
        if not self.tumbling:
            raise ValueError("a tumbling window is missing: the others are put together from the smallest")
        for small, large in pairwise(self.tumbling):
            if large.size == small.size or large.size % small.size:
                raise ValueError(f"{_shown(large)}: size must be a multiple of {small.size / 1e9:g}s, the one before")

    def _check_sliding(self) -> None:
        for window in self.sliding:
            if window.size % self.pane or window.slide % self.pane:
                raise ValueError(f"{_shown(window)}: size and slide must be multiples of a tumbling window's size")

    @cached_property
    def tumbling(self) -> tuple[Tumbling, ...]:
        """By size, the smallest first."""
        return tuple(sorted((w for w in self.windows if isinstance(w, Tumbling)), key=lambda window: window.size))

    @property
    def sliding(self) -> tuple[Sliding, ...]:
        return tuple(window for window in self.windows if isinstance(window, Sliding))

    @property
    def sessions(self) -> tuple[Session, ...]:
        return tuple(window for window in self.windows if isinstance(window, Session))

    @property
    def counts(self) -> tuple[Count, ...]:
        return tuple(window for window in self.windows if isinstance(window, Count))

    @cached_property
    def pane(self) -> int:
        """The smallest tumbling size: the step in which event time is looked at."""
        return self.tumbling[0].size

    def panes_of(self, window: Tumbling | Sliding) -> int:
        """The largest smaller tumbling size that `window` can be put together from; its own if it is the smallest."""
        step = window.slide if isinstance(window, Sliding) else window.size
        sizes = [w.size for w in self.tumbling if w != window]
        return max((size for size in sizes if size <= step and window.size % size == step % size == 0), default=step)

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same definitions, whatever their order and spelling."""
        return blake2b("\n".join(self.lines).encode(), digest_size=8).hexdigest()

    @property
    def lines(self) -> list[str]:
        """The definitions for a person, in an order of their own."""
        return [*sorted(_shown(window) for window in self.windows), f"forget: {self.forget / 1e9:g}s"]


def _check_early(window: Tumbling | Session, pane: int) -> None:
    if window.early and window.early % pane:
        raise ValueError(f"{_shown(window)}: early must be a multiple of {pane / 1e9:g}s")


def _shown(window: BaseModel) -> str:
    fields = window.model_dump(exclude_none=True)
    fields |= {name: f"{fields[name] / 1e9:g}s" for name in ("size", "slide", "gap", "early") if name in fields}
    return f"{{{', '.join(f'{name}: {value}' for name, value in fields.items())}}}"


class StatisticsSettings(BaseSettings):
    """Where the windows are declared: `KAPPA_STATISTICS_WINDOWS=FILE`, by default windows.yaml beside this module."""

    model_config = SettingsConfigDict(env_prefix="KAPPA_STATISTICS_", extra="ignore")

    windows: Path | None = None


def load_windows(file: Path | None = None) -> Windows:
    """The windows of `file`, by default of the file that KAPPA_STATISTICS_WINDOWS names, else of windows.yaml.

    Raises UserError naming the file, the field, the value and what it must be.
    """
    file = file or StatisticsSettings().windows or DEFAULT_WINDOWS
    try:
        return Windows.model_validate(_parsed(file))
    except ValidationError as error:
        raise UserError(f"{file}: {describe(error)}") from None


def _parsed(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text())
    except OSError as error:
        raise UserError(f"KAPPA_STATISTICS_WINDOWS={file}: {error.strerror}; name a file of windows") from error
    except yaml.YAMLError as error:
        raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error
