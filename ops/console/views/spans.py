"""The stretch of time that a view shows, from the arguments of its address."""

from collections.abc import Mapping
from dataclasses import dataclass

from infra.contract.topics import parse_duration
from infra.errors import UserError

SPANS = ("15m", "1h", "6h", "1d", "7d", "30d")
DEFAULT = "6h"
ARGUMENTS = ("span", "from", "to")
LATEST = 2**53  # ms: JSON's numbers are exact up to it
SHORTEST_STEP = 1_000  # ms


@dataclass(frozen=True)
class Span:
    """So many steps of time from `start` on, in ms; `name` is that of a usual length, None of one that was chosen."""

    start: int
    step: int
    steps: int
    name: str | None

    @property
    def end(self) -> int:
        """Where it ends, exclusive."""
        return self.start + self.steps * self.step

    @property
    def times(self) -> list[int]:
        """When each step begins."""
        return [self.start + number * self.step for number in range(self.steps)]

    def range(self, field: str) -> dict[str, object]:
        """Elasticsearch's query for what is in it."""
        return {"range": {field: {"gte": self.start, "lt": self.end}}}

    def as_dict(self) -> dict[str, object]:
        """What a view says of it."""
        return {"span": self.name, "start": self.start, "step": self.step, "end": self.end}


def one_of(name: str, arguments: Mapping[str, str], known: tuple[str, ...], default: str = "") -> str:
    """The value of an argument. Raises UserError if it isn't known."""
    value = arguments.get(name) or default or known[0]
    if value not in known:
        raise UserError(f"{name}={value!r}: there are {', '.join(known)}")
    return value


def span_of(arguments: Mapping[str, str], newest: float, steps: int) -> Span:
    """From `from` to `to`, or the last `span` up to `newest`, in whole steps. Raises UserError naming the argument."""
    name = one_of("span", arguments, SPANS, DEFAULT)
    if arguments.get("from") or arguments.get("to"):
        start, end = _milli("from", arguments), _milli("to", arguments)
        if end <= start:
            raise UserError(f"to={end}: must be after from={start}")
        step = max(SHORTEST_STEP, -(-(end - start) // steps))
        return Span(start // step * step, step, steps, None)
    step = int(parse_duration(name).total_seconds() * 1000) // steps
    return Span(int(newest) // step * step - (steps - 1) * step, step, steps, name)


def _milli(name: str, arguments: Mapping[str, str]) -> int:
    try:
        value = int(arguments.get(name, ""))
    except ValueError:
        value = -1
    if not 0 <= value <= LATEST:
        raise UserError(f"{name}={arguments.get(name, '')!r}: must be a time in ms since the epoch")
    return value
