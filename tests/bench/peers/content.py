"""What two engines say of the same windows: whether it is the same, by content."""

from collections import defaultdict
from collections.abc import Iterator
from math import isclose
from typing import Any, NamedTuple

import orjson

from connectors.kafka.reader import read_topic

PRECISE = 1e-9  # of a sum: the order of additions isn't the same


class Key(NamedTuple):
    """A series of a machine in a window."""

    machine: str
    series: str
    start_unix_nano: int


class Said(NamedTuple):
    """What is compared. Of a counter ours has the growth as its sum, where others add up readings: None."""

    count: int
    sum: float | None


Windows = dict[Key, Said]


class Compared(NamedTuple):
    """How many results were compared, and how many of them are different."""

    results: int
    different: int


def read_windows(bootstrap: str, topic: str) -> Windows:
    """All results that are committed. What was written twice is counted twice, and so isn't what was expected."""
    found: Windows = {}
    for message in read_topic(bootstrap, topic):
        for key, said in results(message.value()):
            before = found.get(key)
            found[key] = said if before is None else said._replace(count=before.count + said.count)
    return found


def results(record: bytes) -> Iterator[tuple[Key, Said]]:
    """The results in a record: one for each row of a table, as ours, or a single one. A watermark has none."""
    said = orjson.loads(record)
    if table := said.get("statistics"):
        yield from _rows(said["machine"], said["window"]["start_unix_nano"], table)
    elif "series" in said:
        yield Key(said["machine"], said["series"], said["start_unix_nano"]), Said(said["count"], said["sum"])


def _rows(machine: str, start: int, table: dict[str, list[Any]]) -> Iterator[tuple[Key, Said]]:
    names = table["series"]
    nothing = [None] * len(names)
    rates, sums = table.get("rate", nothing), table.get("sum", nothing)
    for name, count, total, is_rate in zip(names, table["count"], sums, rates, strict=True):
        yield Key(machine, name, start), Said(count, None if is_rate else total)


def compare(ours: Windows, theirs: Windows) -> Compared:
    """Each machine's results up to the last window that both have closed; all of a machine that only one has."""
    closed = _closed(ours, theirs)
    keys = [key for key in ours.keys() | theirs.keys() if key.start_unix_nano <= closed[key.machine]]
    return Compared(len(keys), sum(not _is_same(ours.get(key), theirs.get(key)) for key in keys))


def _closed(ours: Windows, theirs: Windows) -> dict[str, float]:
    last: list[dict[str, float]] = []
    for windows in (ours, theirs):
        newest: dict[str, float] = defaultdict(lambda: float("inf"))
        for key in windows:
            before = newest.get(key.machine, 0)
            newest[key.machine] = max(before, key.start_unix_nano)
        last.append(newest)
    return {machine: min(each[machine] for each in last) for machine in set(last[0]) | set(last[1])}


def _is_same(ours: Said | None, theirs: Said | None) -> bool:
    if ours is None or theirs is None or ours.count != theirs.count:
        return False
    return ours.sum is None or (theirs.sum is not None and isclose(ours.sum, theirs.sum, rel_tol=PRECISE))
