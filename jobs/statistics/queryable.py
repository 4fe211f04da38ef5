"""What the running statistics answer of a machine: `GET /windows?machine=`, what its open windows hold so far."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from jobs.runtime.queryable import Arguments, InvalidQuestionError, NotKnownError, Question, SavedShard
from jobs.statistics.catalogue import Form, Series
from jobs.statistics.quantiles import Ints
from jobs.statistics.rows import NANO
from jobs.statistics.settings import Windows
from jobs.statistics.state import PLACE

View = dict[str, Any]
Found = Iterator[tuple[int, View]]  # the number of a series, and what a window holds of it

_OF_PANES = ("series", "points", "n", "mean", "min", "max")


class WindowsQuestion:
    """Answers with what has come of each series in the tumbling windows that are open."""

    def __init__(self, windows: Windows) -> None:
        self._pane, self._sizes = windows.pane, windows.sizes

    def question(self) -> Question:
        """As the runtime takes it."""
        return Question("/windows", self.answer)

    def answer(self, shards: Sequence[SavedShard], arguments: Arguments) -> View:
        """The open windows of `machine`. Raises InvalidQuestionError and NotKnownError."""
        name = arguments.get("machine")
        if not name:
            raise InvalidQuestionError("machine: is missing; ask /windows?machine=NAME")
        for shard in shards:
            machines = shard.value("machines")
            if name in machines:
                return self._machine(shard, name, machines.index(name))
        raise NotKnownError(f"machine {name!r}: no event of it is remembered")

    def _machine(self, shard: SavedShard, name: str, number: int) -> View:
        known = {at: Series(*one) for at, one in enumerate(shard.value("series")) if one[0] == number}
        wanted, found = np.array(list(known), np.int64), defaultdict(list)
        for series, window in (*self._gathered(shard, wanted, known), *self._closed(shard, wanted)):
            found[series].append(window)
        return {
            "machine": name,
            "shard": shard.number,
            "watermark_unix_nano": shard.value("watermark"),
            "series": [
                {"series": one.series, "kind": one.kind, "unit": one.unit, "windows": found[at]}
                for at, one in known.items()
                if at in found
            ],
        }

    def _gathered(self, shard: SavedShard, wanted: Ints, known: dict[int, Series]) -> Found:
        """The points that have come in windows of the smallest size; they aren't read yet.

        A counter's points are its readings, a histogram's say nothing by themselves: of both there is the number.
        """
        for (start,) in _places(shard, "points"):
            series, value = (shard.column(f"points/{name}{PLACE}{start}") for name in ("series", "value"))
            for at in np.intersect1d(wanted, series).tolist():
                mine = value[series == at]
                held: View = {"count": len(mine)}
                if known[at].form == Form.GAUGE:
                    held |= {"mean": float(mine.mean()), "min": float(mine.min()), "max": float(mine.max())}
                yield at, _window(self._pane, start) | held

    def _closed(self, shard: SavedShard, wanted: Ints) -> Found:
        """What larger windows have of the panes that are closed."""
        watermark = shard.value("watermark")
        for size in self._sizes.sizes[1:]:
            source, begin = self._sizes.under(size, size), watermark - watermark % size
            panes = [start for pane, start in _places(shard, "panes") if pane == source and start >= begin]
            if not panes:
                continue
            columns = {
                name: np.concatenate([shard.column(f"panes/{name}{PLACE}{source}/{start}") for start in panes])
                for name in _OF_PANES
            }
            for at in np.intersect1d(wanted, columns["series"]).tolist():
                mine = columns["series"] == at
                yield at, _window(size, begin) | _together({name: one[mine] for name, one in columns.items()})


def _places(shard: SavedShard, prefix: str) -> list[tuple[int, ...]]:
    """The numbers in the names of a state's columns, which say of which pane each is."""
    begin = f"{prefix}/series{PLACE}"
    places = (name.removeprefix(begin) for name in shard.columns if name.startswith(begin))
    return sorted(tuple(map(int, place.split("/"))) for place in places)


def _window(size: int, start: int) -> View:
    return {"size_seconds": size / NANO, "start_unix_nano": start, "end_unix_nano": start + size}


def _together(rows: dict[str, Any]) -> View:
    """The rows of one series as one; those without a value count, and say nothing else."""
    valued = rows["n"] > 0
    held: View = {"count": int(rows["points"].sum())}
    if valued.any():
        n = rows["n"][valued]
        held["mean"] = float((rows["mean"][valued] * (n / n.sum())).sum())
        held |= {"min": float(rows["min"][valued].min()), "max": float(rows["max"][valued].max())}
    return held
