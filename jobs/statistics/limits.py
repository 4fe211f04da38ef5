"""How many series, log templates and machines a shard keeps, and what becomes of the data points beyond that.

They are left out, and accounted for: of each machine and pane (the smallest window) one dead letter says how many, and
three of their series for example. A series beyond the limit is one that is new when its machine has as many as may be:
that depends on the order of the log alone.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np
import orjson

from infra.contract import dead_letters
from jobs.runtime.shard_state import Output
from jobs.statistics.quantiles import Ints

TOO_MANY = "too_many_series"
MACHINE = "machine"  # beside the kinds of events: what there is too much of
EXAMPLES = 3
EXAMPLE_CHARACTERS = 200
MACHINE_CHARACTERS = 1_000


class Limits(NamedTuple):
    """The most that a shard keeps, and the most bytes that a record of a window may have."""

    series: int = 10_000  # of a machine: metrics
    templates: int = 2_000  # of a machine: log templates
    machines: int = 20_000
    record_bytes: int = 4_000_000
    parameters: int = 1_000  # of a machine: of its log templates

    def of_machine(self, kind: str) -> int:
        """The most series of a kind of events that one machine may have."""
        return self.templates if kind == "log" else self.series


class Place(NamedTuple):
    """A pane, and what was left out there: events of a kind of a machine, or machines, which then have no name."""

    start: int
    machine: str
    kind: str


@dataclass
class LeftOut:
    """What was left out in one place: how many events, the first and the last offset that they came from, examples."""

    events: int
    first_offset: int
    last_offset: int
    examples: list[str]


class Refused:
    """What was left out in the panes that are still open."""

    def __init__(self, packed: Sequence[Any] = ()) -> None:
        """`packed` is what the method of that name gave."""
        self.places = {Place(*place): LeftOut(*rest) for place, rest in packed}

    def packed(self) -> list[Any]:
        """As JSON."""
        rows = (
            (place, one.events, one.first_offset, one.last_offset, one.examples) for place, one in self.places.items()
        )
        return [[tuple(place), rest] for place, *rest in rows]

    def note(self, machine: str, kind: str, panes: Ints, names: Sequence[str], offset: int) -> None:
        """These events of a record were left out: the start of each one's pane, and the name of its series."""
        for start in np.unique(panes).tolist():
            at = np.flatnonzero(panes == start)
            known = self.places.setdefault(Place(start, machine, kind), LeftOut(0, offset, offset, []))
            known.events += len(at)
            known.last_offset = offset
            for number in at[:EXAMPLES].tolist():
                self._add_example(known.examples, names[number][:EXAMPLE_CHARACTERS])

    @staticmethod
    def _add_example(examples: list[str], name: str) -> None:
        if len(examples) < EXAMPLES and name not in examples:
            examples.append(name)

    def retain(self, is_kept: Callable[[str], bool]) -> None:
        """Only what was left out of these machines stays; what has no machine is of the one that is its first example.

        So of several shards that one is divided into, one accounts for it.
        """
        self.places = {
            place: left_out for place, left_out in self.places.items() if is_kept(place.machine or left_out.examples[0])
        }

    def take(self, end: int, pane: int) -> Iterator[tuple[Place, LeftOut]]:
        """Take what was left out in the panes, of `pane` ns, that have ended by `end`; in a fixed order."""
        for place in sorted(one for one in self.places if one.start + pane <= end):
            yield place, self.places.pop(place)


def dead_letter(place: Place, left_out: LeftOut, limits: Limits, pane: int, source: tuple[str, int]) -> Output:
    """The dead letter for what was left out; `source` is the topic and partition of its events."""
    topic, partition = source
    machine = blake2b(place.machine.encode(), digest_size=8).hexdigest()
    record = {
        "id": f"statistics/{topic}/{partition}/{place.start}/{place.kind}/{machine}",
        "stage": "statistics",
        "code": TOO_MANY,
        "reason": _reason(place, left_out, limits, pane),
        "source": {
            "topic": topic,
            "partition": partition,
            "offset": left_out.first_offset,
            "last_offset": left_out.last_offset,
            "timestamp_unix_milli": place.start // 1_000_000,
        },
        "events": left_out.events,
    }
    if place.machine:
        record["machine"] = place.machine[:MACHINE_CHARACTERS]
    key = f"{topic}/{partition}/{left_out.first_offset}"
    return Output(key, orjson.dumps(record), place.start + pane, topic=dead_letters.TOPIC, by_key=True, note=TOO_MANY)


def _reason(place: Place, left_out: LeftOut, limits: Limits, pane: int) -> str:
    if place.kind == MACHINE:
        most, what, setting = limits.machines, "the shard has {} machines", "MACHINES_PER_SHARD"
    elif place.kind == "log":
        most, what, setting = limits.templates, "the machine has {} log templates", "TEMPLATES_PER_MACHINE"
    else:
        most, what, setting = limits.series, "the machine has {} series", "SERIES_PER_MACHINE"
    return (
        f"{what.format(f'{most:,}')}, as many as may be (KAPPA_STATISTICS_{setting}): {left_out.events:,} events of "
        f"others were left out in {pane / 1e9:g} s, for example of {', '.join(left_out.examples)}"
    )
