"""The model on three scales: single windows, and means of blocks of 12 and of 96 of them.

What is too small to be seen in one window, or strange only because it lasts, shows in the mean of many.
"""

from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from jobs.detector.model import FIELDS, Bools, Columns, Ints, Judgement, Model
from jobs.detector.model_season import BYTES_OF_PROFILE, NoSeason, Season
from jobs.detector.model_tails import Floats
from jobs.detector.settings import DetectorSettings

RATIOS = (12, 8)  # windows in a block, blocks in a block of the next scale
SCALES = (1, 12, 96)  # in windows
SETTLE_BLOCKS = 5
# A scale's share of the alarm budget falls with the square root of its length; it is judged less often than that.
LENIENCE = tuple(float(x) for x in 0.5 * np.log(SCALES) - np.log(np.sum(np.power(SCALES, -0.5))))

QUIET_WINDOWS = 96  # after something told of a series

_OF_BLOCKS = {"block": np.dtype(np.int64), "windows": np.dtype(np.int64), "total": np.dtype(np.float64)}


class Scales:
    """All series of one shard, the same rows on each scale."""

    def __init__(self, settings: DetectorSettings, arrays: Columns | None = None) -> None:
        """`arrays` are those of `dump`; without them there are no series."""
        known = arrays or {}
        columns = [_read(known, f"m{scale}_", FIELDS) for scale in SCALES]
        self.windows = Model(settings, columns[0], Season(known.get("season")))
        larger = zip(SCALES[1:], columns[1:], strict=True)
        self.models = (self.windows, *(Model(_settings(settings, scale), own, NoSeason()) for scale, own in larger))
        self.blocks = tuple(
            Blocks(ratio, _read(known, f"b{scale}_", _OF_BLOCKS))
            for ratio, scale in zip(RATIOS, SCALES[1:], strict=True)
        )
        self.quiet = Quiet(_read(known, "q_", Quiet.FIELDS))

    def __len__(self) -> int:
        return len(self.windows)

    def dump(self) -> Columns:
        """Constructor's `arrays`, each of one dimension."""
        arrays = {"season": self.windows.season.profiles.reshape(-1)} | _named("q_", self.quiet.columns)
        for scale, model in zip(SCALES, self.models, strict=True):
            arrays |= _named(f"m{scale}_", model.columns)
        for scale, blocks in zip(SCALES[1:], self.blocks, strict=True):
            arrays |= _named(f"b{scale}_", blocks.columns)
        return arrays

    def add(self, is_count: Bools, past_windows: Ints, window: int) -> Ints:
        """Append series and return their rows; see Model.add."""
        rows = [
            model.add(is_count, past_windows // scale, window // scale)
            for scale, model in zip(SCALES, self.models, strict=True)
        ]
        for part in (*self.blocks, self.quiet):
            part.grow(len(is_count))
        return rows[0]

    def retain(self, rows: Ints) -> None:
        """Drop all series but these; they are numbered anew, in this order."""
        parts: tuple[Model | PerSeries, ...] = (*self.models, *self.blocks, self.quiet)
        for part in parts:
            part.retain(rows)

    def step(self, window: int | Ints, rows: Ints, value: Floats, samples: Floats, threshold: float) -> list[Judgement]:
        """Judge, then learn, one window; judgements by scale, of larger ones where it is the first after a block."""
        now = numbers = np.broadcast_to(window, rows.shape)
        judgement = self.windows.step(window, rows, value, samples, threshold - LENIENCE[0])
        judgements = [self._hush(0, judgement, now)]
        for at, blocks in enumerate(self.blocks, start=1):
            closed = blocks.add(judgement.rows, numbers, judgement.observed)
            if not len(closed.at):
                break
            rows, now, numbers = judgement.rows[closed.at], now[closed.at], closed.block
            value = np.where(self._is_count(rows), closed.value * blocks.ratio, closed.value)
            judgement = self.models[at].step(numbers, rows, value, closed.windows, threshold - LENIENCE[at])
            judgements.append(self._hush(at, judgement, now))
        return judgements

    def _hush(self, at: int, judgement: Judgement, now: Ints) -> Judgement:
        score = judgement.score + LENIENCE[at]
        return replace(judgement, told=self.quiet.pass_on(at, judgement.rows, score, judgement.told, now))

    def _is_count(self, rows: Ints) -> Bools:
        return np.asarray(self.windows.columns["is_count"][rows] > 0)


class PerSeries:
    """Columns of one element a series."""

    def __init__(self, columns: Columns) -> None:
        self.columns = columns

    def grow(self, more: int) -> None:
        self.columns = {
            name: np.concatenate([column, np.zeros(more, column.dtype)]) for name, column in self.columns.items()
        }

    def retain(self, rows: Ints) -> None:
        self.columns = {name: column[rows] for name, column in self.columns.items()}


class Quiet(PerSeries):
    """What is told of a series: after a surprise only more surprising windows, and nothing of larger scales."""

    FIELDS: ClassVar[dict[str, np.dtype]] = {"until": np.dtype(np.int64), "score": np.dtype(np.float64)}

    @staticmethod
    def of(series: int) -> "Quiet":
        return Quiet({name: np.zeros(series, kind) for name, kind in Quiet.FIELDS.items()})

    def pass_on(self, at: int, rows: Ints, score: Floats, told: Bools, now: Ints) -> Bools:
        """What remains of what the scale number `at` would tell of these rows in the window `now`."""
        until, loudest = self.columns["until"], self.columns["score"]
        louder = (now > until[rows]) | ((score > loudest[rows]) & (at == 0))
        told = told & louder
        until[rows[told]], loudest[rows[told]] = now[told] + QUIET_WINDOWS, score[told]
        return told

    def note(self, rows: Ints, score: Floats, window: int) -> None:
        """That something else tells of these rows what they would."""
        recent = np.where(self.columns["until"][rows] >= window, self.columns["score"][rows], 0.0)
        self.columns["until"][rows] = window + QUIET_WINDOWS
        self.columns["score"][rows] = np.maximum(recent, score)


class Closed(NamedTuple):
    """Blocks that have ended: whose (places among the rows), their number (end time / length), mean and windows."""

    at: Ints
    block: Ints
    value: Floats
    windows: Floats


class Blocks(PerSeries):
    """Blocks of `ratio` windows, put together online. One ends when a window of a later one comes."""

    def __init__(self, ratio: int, columns: Columns) -> None:
        super().__init__(columns)
        self.ratio = ratio

    def add(self, rows: Ints, window: Ints, value: Floats) -> Closed:
        """Add a window to each row's block; returns the blocks that ended before it."""
        number, windows, total = (self.columns[name][rows] for name in _OF_BLOCKS)
        block = -(-window // self.ratio)
        ended = (block != number) & (windows > 0)
        first = ended | (windows == 0)
        mean, present = total[ended] / windows[ended], windows[ended].astype(np.float64)
        closed = Closed(np.flatnonzero(ended), number[ended], mean, present)
        self.columns["block"][rows] = block
        self.columns["windows"][rows] = np.where(first, 1, windows + 1)
        self.columns["total"][rows] = np.where(first, value, total + value)
        return closed


def _read(arrays: Columns, prefix: str, kinds: dict[str, np.dtype]) -> Columns:
    return {name: arrays.get(prefix + name, np.zeros(0, kind)) for name, kind in kinds.items()}


def _named(prefix: str, columns: Columns) -> Columns:
    return {prefix + name: column for name, column in columns.items()}


def _settings(settings: DetectorSettings, scale: int) -> DetectorSettings:
    changes = {"window_seconds": settings.window_seconds * scale, "settle_windows": SETTLE_BLOCKS}
    return settings.model_copy(update=changes)


BYTES_PER_SERIES = (
    len(SCALES) * sum(kind.itemsize for kind in FIELDS.values())
    + len(RATIOS) * sum(kind.itemsize for kind in _OF_BLOCKS.values())
    + sum(kind.itemsize for kind in Quiet.FIELDS.values())
    + BYTES_OF_PROFILE
)
