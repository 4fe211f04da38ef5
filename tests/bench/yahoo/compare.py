"""Compares the counts that an engine wrote with the truth."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from tests.bench.yahoo.ads import Counts, Window

Record = Mapping[str, Any]  # of an engine's output: {"campaign": …, "window_start": ms, "count": …}


def window_of(record: Record) -> Window:
    """Whose count a record is."""
    return record["campaign"], record["window_start"]


@dataclass(frozen=True)
class Comparison:
    """How many windows of a campaign there are, and how many are wrong, and in which way."""

    windows: int
    missing: int  # windows without a count
    wrong: int  # with another one
    unknown: int  # that the truth doesn't have
    repeated: int  # that have several counts, of an engine that gives one
    decreased: int  # whose count became less, of an engine that gives updates

    @property
    def passed(self) -> bool:
        """Whether each window has its count."""
        return self.windows > 0 and not any((self.missing, self.wrong, self.unknown, self.repeated, self.decreased))

    def facts(self) -> dict[str, Any]:
        """As the report has it."""
        return asdict(self) | {"passed": self.passed}


def compare(
    truth: Counts, records: Iterable[Record], is_compared: Callable[[int], bool], *, updates: bool
) -> Comparison:
    """Compare the records of an output in the order of their partitions; with `updates`, a window's last one counts."""
    found: dict[Window, list[int]] = defaultdict(list)
    for record in records:
        if is_compared(record["window_start"]):
            found[window_of(record)].append(record["count"])
    faults: Counter[str] = Counter()
    for window, counts in found.items():
        if window not in truth:
            faults["unknown"] += 1
            continue
        faults["wrong"] += counts[-1] != truth[window]
        faults["repeated"] += not updates and len(counts) > 1
        faults["decreased"] += counts != sorted(counts)
    missing = len(truth.keys() - found.keys())
    kinds = ("wrong", "unknown", "repeated", "decreased")
    return Comparison(len(truth), missing, **{kind: faults[kind] for kind in kinds})
