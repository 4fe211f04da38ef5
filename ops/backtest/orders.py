"""What operators have said to the detector, as a replay of recorded statistics needs it.

The recorded statistics carry what was said while they were written. What was said before, and still holds, is told to
the replay at its beginning.
"""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import orjson

from jobs.detector import control
from jobs.detector.control import Control
from jobs.detector.settings import DetectorSettings
from ops.backtest.records import Batch

STANDING = ("feedback", "suppress", "allow")  # the others say something of what a replay begins without
KNOWN_AFTER = 2  # windows: an order about a series is obeyed once the series is known
_HIDDEN = ("action", "by", "novelty_record", "kind", "verdict")


class Order(NamedTuple):
    """What an operator said, and when."""

    time_ms: int
    control: Control

    def concerns(self, machine: str, series: Iterable[str]) -> bool:
        """Whether it is about a machine, and about any of these series of it if it names some."""
        pattern = self.control.get("series")
        is_here = fnmatchcase(machine, self.control.get("machine") or "*")
        return is_here and (pattern is None or any(fnmatchcase(one, pattern) for one in series))

    def text(self) -> str:
        """For a person."""
        said = " ".join(f"{name}={value}" for name, value in self.control.items() if name not in _HIDDEN)
        return f"{self.control['action']} {said}"


def read(bootstrap: str, topic: str) -> list[Order]:
    """All that the topic `detector.control` holds, in the order of time."""
    said = control.history(bootstrap, topic)
    return [Order(one["time"], {name: value for name, value in one.items() if name != "time"}) for one in said]


def with_orders(batches: Iterable[Batch], orders: Sequence[Order], settings: DetectorSettings) -> Iterator[Batch]:
    """Recorded statistics, after what was said before their first window and still holds."""
    left = iter(batches)
    for batch in left:
        begin = next((end for value in batch if (end := _window_end(value, settings)) is not None), None)
        if begin is not None:
            standing = [one for one in orders if one.control["action"] in STANDING and one.time_ms * 1_000_000 < begin]
            # In the order in which they were said.
            time = begin + KNOWN_AFTER * settings.window_nano
            yield [_record(one, time + number) for number, one in enumerate(standing)]
            yield batch
            break
        yield batch
    yield from left


def _record(order: Order, time: int) -> bytes:
    """As a record of `statistics`."""
    return orjson.dumps({"machine": order.control["machine"], "control": order.control, "time_unix_nano": time})


def _window_end(value: bytes, settings: DetectorSettings) -> int | None:
    """The end of the window of a record that the detector judges; None of others."""
    window = orjson.loads(value or b"{}").get("window") or {}
    is_judged = window.get("kind") == "tumbling" and window.get("size_seconds") == settings.window_seconds
    return int(window["end_unix_nano"]) if is_judged else None
