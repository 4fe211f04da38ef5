"""The detector's packed fold: all records of one partition of `statistics`, in offset order, through one call.

Windows wait until a watermark closes them; then every series of the shard takes the step at once. So the result depends
on the records alone: `fold(a + b)` is `fold(b)` after `fold(a)`, byte for byte.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import orjson
import structlog
from numpy.typing import NDArray

from infra.contract.dead_letters import InvalidRecordError
from infra.contract.sharding import Mine, shard_key
from jobs.detector.detector import Detector
from jobs.detector.intake import check_control, check_controlled, check_statistics, check_window
from jobs.detector.model.arrays import Columns, Ints
from jobs.detector.novelties import Novelty
from jobs.detector.rules import is_pattern
from jobs.detector.saved_state import NOTHING, Saved, joined
from jobs.detector.settings import DetectorSettings
from jobs.runtime.intake import LATE, parse, watermark_in
from jobs.runtime.packed_state import Parts, check_names, pack, unpack
from jobs.runtime.shard_state import Input, Message, Rejected

Record = dict[str, Any]
Waiting = tuple[Record, bytes]  # a record, parsed and as it came

_NO_CONTROL = object()
_log = structlog.get_logger(__name__)


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
        pending = _split(saved.arrays["pending"], lengths) if len(lengths) else []
        self.pending = [raw for raw in pending if _can_be_used(raw)]

    def dump(self) -> Parts:
        """The state, packed: the same for the same records, however they were cut into calls of `feed`."""
        waiting: Columns = {
            "pending": np.frombuffer(b"".join(self.pending), np.uint8),
            "pending_lengths": np.array([len(raw) for raw in self.pending], np.int64),
        }
        own = Saved({"window": self.window, "closed": self.closed}, waiting)
        return pack(*joined(own, self.detector.saved()))

    def retain(self, mine: Mine) -> None:
        """Forget the machines whose key isn't `mine`, and what waits of them or for them alone."""
        self.detector.retain(mine)
        self.pending = [raw for raw in self.pending if _concerns(orjson.loads(raw), mine)]

    @property
    def watermark(self) -> int:
        """Novelties that follow are of windows that end then or later: they have the times of windows' ends."""
        return self.settings.end_of(self.closed) + 1

    def feed(self, records: Sequence[bytes]) -> list[Novelty]:
        """The same as `take`, of records that can all be used. Raises InvalidRecordError if one can't."""
        emitted, rejected = self.take(Input("statistics", 0, range(len(records)), records).messages())
        for _, error in rejected:
            raise error
        return emitted

    def take(self, messages: Iterable[Message]) -> tuple[list[Novelty], list[Rejected]]:
        """Take records in offset order.

        Returns the records of novelties that the watermarks among them cause, and what can't be used.
        """
        emitted: list[Novelty] = []
        rejected: list[Rejected] = []
        waiting = [(orjson.loads(raw), raw) for raw in self.pending]
        for message in messages:
            try:
                record = parse(message.value)
                if (watermark := watermark_in(record, message)) is not None:
                    waiting = self._close_windows(watermark, waiting, emitted)
                elif self._is_wanted(record, message):
                    waiting.append((record, message.value or b""))
            except InvalidRecordError as error:
                rejected.append((message, error))
        self.pending = [raw for _, raw in waiting]
        return emitted, rejected

    def _is_wanted(self, record: Record, message: Message) -> bool:
        """Whether it is judged or obeyed. Raises InvalidRecordError if it can't be used."""
        if "control" in record:
            check_controlled(record, message)
            return True
        check_window(record, message)
        if not self._is_judged(record["window"]):
            return False
        check_statistics(record)
        end = record["window"]["end_unix_nano"]
        if end // self.settings.window_nano <= self.window:
            raise InvalidRecordError(LATE, f"window.end_unix_nano: {end} is of a window that was judged before")
        return True

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

    def _windows_to_step(self, due: list[int], closed: int) -> Iterator[int]:
        """Those with data, so many empty ones after each that every silence is seen, and those in which machines go.

        Asked for one by one: which is next depends on what the step before has left.
        """
        patience = 10 * self.settings.silence_windows
        for with_data in [*due, closed + 1]:
            while len(self.detector.machines):
                newest = self.detector.machines.newest_window()
                is_patient = self.window < newest + patience
                window = self.window + 1 if is_patient else self.detector.next_gone(self.window)
                if window >= with_data:
                    break
                yield window
            if with_data <= closed:
                yield with_data


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


def _can_be_used(raw: bytes) -> bool:
    """Whether a control event that waits can be obeyed: version 0.1.0 kept such as it then ended with, each time."""
    control = orjson.loads(raw).get("control", _NO_CONTROL) if b'"control"' in raw else _NO_CONTROL
    try:
        if control is not _NO_CONTROL:
            check_control(control)
    except InvalidRecordError as error:
        _log.warning("control event dropped", reason=error.reason, control=control)
        return False
    return True


def _concerns(record: Record, mine: Mine) -> bool:
    """Whether a record that waits says something of machines that are `mine`, or of all that meet a pattern."""
    if "control" not in record:
        return mine(shard_key(record["machine"], record.get("inventory")))
    machine = record["control"]["machine"]
    return is_pattern(machine) or mine(machine)


def _split(raw: NDArray[np.uint8], lengths: Ints) -> list[bytes]:
    ends = np.cumsum(lengths).tolist()
    data = raw.tobytes()
    return [data[end - length : end] for end, length in zip(ends, lengths.tolist(), strict=True)]
