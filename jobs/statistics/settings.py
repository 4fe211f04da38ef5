"""Which windows the statistics job emits: read from one file, checked before anything starts."""

from collections import Counter
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from infra.errors import UserError
from infra.settings import describe
from jobs.statistics.limits import Limits
from jobs.statistics.panes import PaneSizes
from jobs.statistics.windows import KINDS, AnyWindow
from jobs.statistics.windows.kind import Nanoseconds, Window, in_seconds

DEFAULT_WINDOWS = Path(__file__).with_name("windows.yaml")
PREFIX = "KAPPA_STATISTICS_"


class Windows(BaseModel):
    """All windows, and the time to live of what is remembered of a series, in ns of event time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    windows: tuple[AnyWindow, ...]
    state_ttl: Nanoseconds = 3600 * 1_000_000_000

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for declared, times in Counter(self.windows).items():
            if times > 1:
                raise ValueError(f"{declared} is declared {times} times; once is enough")
        if not self.sizes.sizes:
            raise ValueError("a tumbling window is missing: the others are put together from the smallest")
        for window in self.ordered:
            window.check(self.sizes, self.state_ttl)
        return self

    @cached_property
    def sizes(self) -> PaneSizes:
        """The sizes of the panes that larger windows are put together from."""
        return PaneSizes(tuple(sorted(window.pane_size for window in self.windows if window.pane_size)))

    @property
    def pane(self) -> int:
        """The smallest size: the step in which event time is looked at."""
        return self.sizes.smallest

    @cached_property
    def ordered(self) -> tuple[Window, ...]:
        """The windows in an order that doesn't depend on how they are declared."""
        return tuple(sorted(self.windows, key=str))

    @cached_property
    def fingerprint(self) -> str:
        """The same for the same definitions, whatever their order and spelling."""
        return blake2b("\n".join(self.lines).encode(), digest_size=8).hexdigest()

    @property
    def lines(self) -> list[str]:
        """The definitions for a person, in an order of their own."""
        return [*map(str, self.ordered), f"state_ttl: {in_seconds(self.state_ttl)}"]


class StatisticsSettings(BaseSettings):
    """Where the windows are declared, and how much a shard keeps at most."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore")

    windows: Path | None = Field(default=None, description="the file of windows; default: windows.yaml beside the job")
    series_per_machine: int = Field(
        default=Limits().series,
        ge=1,
        description="metric series of one machine; data points of more are rejected (too_many_series)",
    )
    templates_per_machine: int = Field(
        default=Limits().templates,
        ge=1,
        description="log templates of one machine; lines of more are rejected (too_many_series)",
    )
    parameters_per_machine: int = Field(
        default=Limits().parameters,
        ge=0,
        description="variable parts of one machine's log templates whose values are learned; nothing is said of others",
    )
    machines_per_shard: int = Field(
        default=Limits().machines,
        ge=1,
        description="machines of one partition; events of more are rejected (too_many_series)",
    )
    record_bytes: int = Field(
        default=Limits().record_bytes,
        ge=10_000,
        description="bytes of a record of `statistics`; a window with more becomes several records",
    )

    @property
    def limits(self) -> Limits:
        """The most that a shard keeps and writes."""
        return Limits(
            self.series_per_machine,
            self.templates_per_machine,
            self.machines_per_shard,
            self.record_bytes,
            self.parameters_per_machine,
        )


def load_windows(file: Path | None = None) -> Windows:
    """The windows of `file`, by default of the windows.yaml beside this module.

    Raises UserError naming the file, the field, the value and what it must be.
    """
    file = file or DEFAULT_WINDOWS
    try:
        return Windows.model_validate(_parsed(file))
    except ValidationError as error:
        raise UserError(f"{file}: {_described(error)}") from None


def _parsed(file: Path) -> Any:
    try:
        return yaml.safe_load(file.read_text())
    except OSError as error:
        raise UserError(f"{PREFIX}WINDOWS={file}: {error.strerror}; name a file of windows") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{file}: not YAML: {' '.join(str(error).split())}") from error


def _described(error: ValidationError) -> str:
    """The first fault in one line; of a field that there isn't, those that there are."""
    fault, text = error.errors()[0], describe(error)
    if fault["type"] != "extra_forbidden":
        return text
    match fault["loc"]:
        case ("windows", _, kind, _):
            known = KINDS[kind].model_fields
        case (_,):
            known = Windows.model_fields
        case _:
            return text
    return f"{text.rpartition(': ')[0]}: there is no such field; there are {', '.join(known)}"
