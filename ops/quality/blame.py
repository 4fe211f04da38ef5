"""Whether the series that the detector names are those that experts blame: HitRate (Su and others 2019, OmniAnomaly).

An expert has said of each labelled event which series make it. Of an event that was found, the series are ranked as
its first alert ranks its contributors. HitRate@100% is the share of the expert's n series among the n that rank
highest; HitRate@150% that among the 1.5 n that rank highest.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from infra.errors import UserError
from jobs.detector.model.arrays import Bools, Floats

FOLDER = "interpretation_label"


class Blamed(NamedTuple):
    """A labelled event: its windows, from `first` to before `end`, and the series that make it, counted from 0."""

    first: int
    end: int
    series: frozenset[int]


def read(folder: Path, machine: str) -> list[Blamed]:
    """The events of a machine, from lines like `4629-4688:9,10`, which count series from 1; none without a file.

    Raises UserError, naming the line, for anything else.
    """
    file = folder / FOLDER / f"{machine}.txt"
    return [_parsed(file, line) for line in file.read_text().splitlines() if line.strip()] if file.exists() else []


def _parsed(file: Path, line: str) -> Blamed:
    try:
        span, named = line.split(":")
        first, end = map(int, span.split("-"))
        return Blamed(first, end, frozenset(int(number) - 1 for number in named.split(",")))
    except ValueError:
        raise UserError(f"{file}: {line!r}: write first-end:series,series") from None


def hit_rates(
    blamed: Mapping[str, Sequence[Blamed]], alerts: Mapping[str, Bools], ranks: Mapping[str, Floats]
) -> dict[str, float | int | None]:
    """Means over the events in which an alert starts; None without one. By machine: `alerts` (windows), `ranks`
    (windows, series), which are greater of what is named before."""
    found = [
        (event, ranks[machine][event.first + int(np.argmax(within))])
        for machine, events in blamed.items()
        for event in events
        if (within := alerts[machine][event.first : event.end]).any()
    ]
    rates = {f"hit_rate_{round(100 * part)}": [_hits(*one, part) for one in found] for part in (1.0, 1.5)}
    return {"events": len(found), **{name: float(np.mean(each)) if each else None for name, each in rates.items()}}


def _hits(event: Blamed, ranks: Floats, part: float) -> float:
    highest = np.argsort(-ranks, kind="stable")[: int(part * len(event.series))]
    return len(event.series.intersection(highest.tolist())) / len(event.series)
