"""An absence: no event of a machine for so long."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from jobs.rules.rule import Events, Finding, Nanoseconds, Observation, Record, Rule, Tracker, seconds


class Absence(Rule):
    """No event that `of` takes (by default: no event at all) for longer than `for`, in event time.

    The time counts from the last such event, or from the first event of any kind of a machine that has had none. It is
    over with the next such event, and when the machine is evicted or leaves those that the rule watches.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ("seconds",)
    WATCHES_PRESENCE: ClassVar[bool] = True

    kind: Literal["absence"]
    of: Events | None = None
    lasting: Nanoseconds = Field(alias="for")
    text: str = "{name}: nothing of {machine} for {seconds} s"

    @property
    def selectors(self) -> tuple[Events, ...]:
        return (self.of,) if self.of else ()

    @property
    def longest(self) -> int:
        return self.lasting

    def tracker(self, packed: Record | None = None) -> "AbsenceTracker":
        return AbsenceTracker(self, packed or {})


class AbsenceTracker(Tracker):
    """When the last event came, and whether there is an alert that it has been too long ago."""

    def __init__(self, rule: Absence, packed: Record) -> None:
        super().__init__(rule.cooldown, packed)
        self.rule = rule
        self.last: int | None = packed.get("last")  # of a new tracker None; then never again
        self.started: int | None = packed.get("started")

    def take(self, time: int, observations: Sequence[Observation]) -> Iterator[Finding]:
        if self.last is None:
            self.last = time
        if self.rule.selectors and not observations:
            return
        yield from self.close(time)
        self.last = time

    def _expire(self, before: int) -> Iterator[Finding]:
        """Start the alert if it is due earlier than `before`. A cooldown delays it: the absence may outlast that."""
        if self.last is None or self.started is not None:
            return
        due = max(self.last + self.rule.lasting, self.cooldown_end)
        if due < before:
            self.started = due
            yield self.start(due, self.last, (), **self._fields())

    def advance(self, before: int) -> Iterator[Finding]:
        yield from self._expire(before)
        if self.last is not None:
            self.end_cooldown(self.last + self.rule.lasting)  # until then it may delay the next alert

    def close(self, time: int) -> Iterator[Finding]:
        if self.started is None or self.last is None:
            return
        yield Finding("end", time, self.started, self.last, (), tuple(self._fields().items()))
        self.started = None

    def _fields(self) -> dict[str, str]:
        return {"seconds": seconds(self.rule.lasting)}

    def packed(self) -> Record:
        fields = {"last": self.last, "started": self.started}
        return self.packed_cooldown() | {name: value for name, value in fields.items() if value is not None}
