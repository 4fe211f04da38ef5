"""A sequence: an event and then another one of the same machine within a time."""

from collections.abc import Iterator, Sequence
from typing import ClassVar, Literal

from jobs.rules.rule import Events, Finding, Nanoseconds, Observation, Record, Rule, Tracker, seconds

FIRST, THEN = 0, 1


class EventSequence(Rule):
    """An event that `first` takes, and `within` the time after it, but not at the same time, one that `then` takes.

    Of several first events the last before the other counts; each is part of one alert at most.
    """

    FIELDS: ClassVar[tuple[str, ...]] = ("first", "then", "seconds")

    kind: Literal["sequence"]
    first: Events
    then: Events
    within: Nanoseconds
    text: str = "{name}: on {machine} {first} and {seconds} s later {then}"

    @property
    def selectors(self) -> tuple[Events, ...]:
        return (self.first, self.then)

    @property
    def longest(self) -> int:
        return self.within

    def tracker(self, packed: Record | None = None) -> "SequenceTracker":
        return SequenceTracker(self, packed or {})


class SequenceTracker(Tracker):
    """The last first event that none has followed."""

    def __init__(self, declared: EventSequence, packed: Record) -> None:
        super().__init__(declared.cooldown, packed)
        self.rule = declared
        first = packed.get("first")
        self.first: tuple[int, Observation] | None = (first[0], Observation(*first[1])) if first else None

    def take(self, time: int, observations: Sequence[Observation]) -> Iterator[Finding]:
        # Later steps come first: what is of the same time follows nothing of it.
        for one in observations:
            if one.step == FIRST:
                self.first = (time, one)
            elif self.first and not self.cools_down(time):
                yield self._followed(time, one, *self.first)

    def _followed(self, time: int, then: Observation, since: int, first: Observation) -> Finding:
        self.first = None
        fields = {"first": _shown(first), "then": _shown(then), "seconds": seconds(time - since)}
        return self.start(time, since, [first.shown(since), then.shown(time)], **fields)

    def advance(self, before: int) -> Iterator[Finding]:
        self.end_cooldown(before)
        if self.first and self.first[0] < before - self.rule.within:
            self.first = None
        yield from ()

    def packed(self) -> Record:
        return self.packed_cooldown() | ({"first": (self.first[0], tuple(self.first[1]))} if self.first else {})


def _shown(event: Observation) -> str:
    if event.body is not None:
        return f'"{event.body}"'
    return event.series if event.value is None else f"{event.series} = {event.value:g}"
