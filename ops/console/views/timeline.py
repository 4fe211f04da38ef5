"""The members of an incident over time, as bars: who began first, and who has ended."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ops.console.views.lanes import level

LABEL, SPAN, ROW, HEAD = 190, 840, 18, 20  # in SVG units: names, bars, the height of a lane and of the times
TICKS = 6
LEAST_WIDTH = 4.0  # of a bar, so that a short novelty is seen
LONGEST_NAME = 28


class Bar(NamedTuple):
    """The first novelty of a machine: from its first window to its end, or to the span's while it is open."""

    machine: str
    name: str  # cut to what there is room for
    verdict: str
    level: int  # of its score's colour
    x: float
    y: int
    width: float
    is_open: bool


class Tick(NamedTuple):
    """A time that is written above the bars, in ms of event time."""

    time: int
    x: float


class Timeline(NamedTuple):
    """The drawing, in SVG units."""

    bars: tuple[Bar, ...]
    ticks: tuple[Tick, ...]
    width: int
    height: int


def timeline(incident: Mapping[str, Any]) -> Timeline:
    """Draw an incident's members, in their order. The span is that of their novelties and of the incident's news."""
    members = incident["members"]
    known = [incident[name] for name in ("started", "updated", "ended") if incident[name] is not None]
    times = [*known, *(member["since"] for member in members), *filter(None, map(_ended, members))]
    start, end = min(times, default=0), max(times, default=0)
    length = max(end - start, 1)

    def x(time: float) -> float:
        return round(LABEL + SPAN * (time - start) / length, 1)

    def bar(row: int, member: Mapping[str, Any]) -> Bar:
        name, ended = member["machine"], _ended(member)
        begin = x(member["since"])
        return Bar(
            machine=name,
            name=name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…",
            verdict=(member["verdict"] or "").replace("_", " "),
            level=level(member["score"]),
            x=min(begin, LABEL + SPAN - LEAST_WIDTH),
            y=HEAD + row * ROW,
            width=max(round(x(end if ended is None else ended) - begin, 1), LEAST_WIDTH),
            is_open=ended is None and member["now"] is not None,
        )

    marks = [start + length * place // TICKS for place in range(TICKS)]
    return Timeline(
        bars=tuple(bar(row, member) for row, member in enumerate(members)),
        ticks=tuple(Tick(time, x(time)) for time in marks),
        width=LABEL + SPAN,
        height=HEAD + len(members) * ROW + 4,
    )


def _ended(member: Mapping[str, Any]) -> int | None:
    """When its novelty ended; None while it is open, or not in the index yet."""
    ended: int | None = (member["now"] or {}).get("ended")
    return ended
