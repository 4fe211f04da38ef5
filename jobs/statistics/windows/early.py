"""Early firing: when the result so far of a window that is still open is emitted, at the end of a pane."""

from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, model_serializer

from jobs.statistics.quantiles import Ints
from jobs.statistics.windows.kind import Nanoseconds, in_seconds

Booleans = NDArray[np.bool_]


class ByTime(BaseModel):
    """At every multiple of `every`, in event time: `early: 30s`. Of windows that got anything since the last time."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    every: Nanoseconds

    @model_serializer
    def _shown(self) -> str:
        return in_seconds(self.every)

    def check(self, window: object, pane: int) -> None:
        """Raises ValueError if it isn't a multiple of the pane in whose steps `window` is put together."""
        if self.every % pane:
            raise ValueError(f"{window}: early must be a multiple of {in_seconds(pane)}")

    def may_fire(self, end: int) -> bool:
        """Whether any window can fire at the end of a pane."""
        return end % self.every == 0

    def fires(self, end: int, before: Ints, now: Ints, last: Ints) -> Booleans:
        """Which open windows fire at `end`.

        They had `before` values at the end of the pane before, have `now`, and the last one came at `last`.
        """
        return (last >= end - self.every) & self.may_fire(end)


class ByCount(BaseModel):
    """At the end of each pane in which another `values` values are reached: `early: {values: 20}`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    values: int = Field(ge=1)

    def check(self, window: object, pane: int) -> None:
        """Any number fits any pane."""

    def may_fire(self, end: int) -> bool:
        """Whether any window can fire at the end of a pane."""
        return True

    def fires(self, end: int, before: Ints, now: Ints, last: Ints) -> Booleans:
        """Which open windows fire at `end`, see ByTime."""
        return now // self.values > before // self.values


def _form(value: Any) -> str:
    return "values" if isinstance(value, ByCount) or (isinstance(value, dict) and "every" not in value) else "time"


def _by_time(value: Any) -> Any:
    return value if isinstance(value, dict | ByTime) else {"every": value}


Early = Annotated[
    Annotated[ByTime, BeforeValidator(_by_time), Tag("time")] | Annotated[ByCount, Tag("values")],
    Discriminator(_form),
]
