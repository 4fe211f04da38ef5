"""The detector's packed fold: all records of one partition of `statistics`, in offset order, through one call.

Windows wait until a watermark closes them; then every series of the shard takes the step at once. So the result depends
on the records alone: `fold(a + b)` is `fold(b)` after `fold(a)`, byte for byte.
"""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from infra.contract.watermarks import watermark_of
from jobs.detector.detector import Detector
from jobs.detector.model.arrays import Columns, Ints
from jobs.detector.novelties import Novelty
from jobs.detector.saved_state import NOTHING, Saved, joined
from jobs.detector.settings import DetectorSettings
from jobs.runtime.packed_state import Parts, check_names, pack, unpack

Record = dict[str, Any]
Waiting = tuple[Record, bytes]  # a record, parsed and as it came


def fold(state: Parts | None, records: Sequence[bytes], settings: DetectorSettings) -> tuple[Parts, list[Novelty]]:
    """Fold JSON records of `statistics` (watermarks included) into the state; returns it and the novelties to emit."""
    shard = Shard(settings, state)
    emitted = shard.feed(records)
    return shard.dump(), emitted


class Shard:
    """One partition's fold: keeps records until a watermark closes their windows, then gives them to the detector."""

    def __init__(self, settings: DetectorSettings, state: Parts | None = None) -> None:
        """`state` is what `dump` gave; without it the shard is new.

        Raises UserError if it is of a version of the code with another layout.
        """
        self.settings = settings
        saved = _unpacked(state, settings) if state else NOTHING
        self.detector = Detector(settings, saved)
        self.window: int = saved.header.get("window", -1)  # the newest one that took its step
        self.closed: int = saved.header.get("closed", -1)  # the newest that a watermark closed, with data or without
        lengths = saved.ints("pending_lengths")
        self.pending = _split(saved.arrays["pending"], lengths) if len(lengths) else []

    def dump(self) -> Parts:
        """The state, packed: the same for the same records, however they were cut into calls of `feed`."""
        waiting: Columns = {
            "pending": np.frombuffer(b"".join(self.pending), np.uint8),
            "pending_lengths": np.array([len(raw) for raw in self.pending], np.int64),
        }
        own = Saved({"window": self.window, "closed": self.closed}, waiting)
        return pack(*joined(own, self.detector.saved()))

    @property
    def watermark(self) -> int:
        """Novelties that follow are of windows that end then or later: they have the times of windows' ends."""
        return self.settings.end_of(self.closed) + 1

    def feed(self, records: Iterable[bytes]) -> list[Novelty]:
        """Take records in offset order; returns the records of novelties that the watermarks among them cause."""
        emitted: list[Novelty] = []
        waiting = [(orjson.loads(raw), raw) for raw in self.pending]
        for raw in records:
            record = orjson.loads(raw)
            if (watermark := watermark_of(record)) is not None:
                waiting = self._close_windows(watermark, waiting, emitted)
            elif "control" in record or self._is_judged(record["window"]):
                waiting.append((record, raw))
        self.pending = [raw for _, raw in waiting]
        return emitted

    def _is_judged(self, window: Record) -> bool:
        return bool(window["kind"] == "tumbling" and window["size_seconds"] == self.settings.window_seconds)

    def _close_windows(self, watermark: int, waiting: list[Waiting], emitted: list[Novelty]) -> list[Waiting]:
        """Step all windows that end by the watermark; returns the records that still wait."""
        closed = watermark // self.settings.window_nano
        self.closed = max(self.closed, closed)
        controls = sorted(
            (one for one in waiting if "control" in one[0]), key=lambda one: (one[0]["time_unix_nano"], one[1])
        )
        due, later = self._by_window([one for one in waiting if "control" not in one[0]], closed)
        for window in self._windows_to_step(sorted(due), closed):
            while controls and controls[0][0]["time_unix_nano"] // self.settings.window_nano < window:
                emitted += self.detector.apply_control(controls.pop(0)[0]["control"], window)
            emitted += self.detector.step(window, due.get(window, []))
            self.window = window
        return later + controls

    def _by_window(self, waiting: list[Waiting], closed: int) -> tuple[dict[int, list[Record]], list[Waiting]]:
        """The records of each window up to `closed`, and those that still wait; records of older windows are left."""
        due: dict[int, list[Record]] = {}
        later: list[Waiting] = []
        for record, raw in waiting:
            window = record["window"]["end_unix_nano"] // self.settings.window_nano
            if window > closed:
                later.append((record, raw))
            elif window > self.window:
                due.setdefault(window, []).append(record)
        return due, later

    def _windows_to_step(self, due: list[int], closed: int) -> list[int]:
        """Those with data, and so many empty ones after each that every silence is seen."""
        machines = self.detector.machines
        if machines.first_window is None and not due:
            return []
        patience = 10 * self.settings.silence_windows
        newest = machines.newest_window() or due[0]
        windows = set(due)
        for seen, following in zip([newest, *due], [*due, closed + 1], strict=True):
            windows.update(range(max(seen, self.window) + 1, min(following, seen + patience + 1)))
        return sorted(windows)


def _unpacked(state: Parts, settings: DetectorSettings) -> Saved:
    """Raises UserError if the names in a state aren't those that this version writes."""
    saved, (header, arrays) = Saved(*unpack(state)), _layout(settings)
    check_names(saved.header, header, "detector")
    check_names(saved.arrays, arrays, "detector")
    return saved


@cache
def _layout(settings: DetectorSettings) -> tuple[set[str], set[str]]:
    """The names in a state: of values and of arrays."""
    header, arrays = unpack(Shard(settings).dump())
    return set(header), set(arrays)


def _split(raw: NDArray[np.uint8], lengths: Ints) -> list[bytes]:
    ends = np.cumsum(lengths).tolist()
    data = raw.tobytes()
    return [data[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
