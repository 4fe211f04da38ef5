"""The model of one scale: every series of a shard at once, one window at a time, in constant state.

Each series holds, whatever its history (the same on larger scales: scales.py):

- *level*, normal-inverse-gamma over window means: is this value like the past?
- *step*, normal-inverse-gamma over differences of successive windows: is this a jump? (drifting series)
- *rate*, gamma-Poisson over counts (log templates; an absent one is a zero). A count is also judged on Anscombe's
  scale by level and step; the mixture of both models forgives overdispersion.
- *season*, a profile of the hours of a working day and of a weekend: is it usual at this time? (season.py)
- *sustained deviation*, the mean level score of the last windows: is it a little strange for too long?
- a *tail* per statistic: what past scores were like, so that a score means what it says on real data.
- an *episode*: a surprise starts it; the model of the old normal rests while a challenger learns the new one.
  Values that return end it (anomaly); if they stay, the challenger takes over (state change) and the old model is
  kept for a while, to be reinstated if the values return.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from jobs.detector.model import rounding
from jobs.detector.model.anscombe import to_model_scale, to_own_scale
from jobs.detector.model.arrays import Bools, Columns, Floats, Ints
from jobs.detector.model.elementary import ln
from jobs.detector.model.episodes import EPISODE_SCORE, enter_phases, turns
from jobs.detector.model.learning import learn, learn_hours, start_counts, start_new
from jobs.detector.model.protocol import Judgement, Phase, Turn
from jobs.detector.model.season import NoSeason, Season, hour_of
from jobs.detector.model.series_state import SeriesState, layout
from jobs.detector.model.statistics import STATISTICS, WITHOUT_SEASON, Statistic
from jobs.detector.model.weighing import weigh
from jobs.detector.settings import DetectorSettings


class WindowModel:
    """All series of one shard; a `Model` (protocol.py)."""

    def __init__(
        self, settings: DetectorSettings, columns: Columns | None = None, season: Season | None = None
    ) -> None:
        """`columns` are those of `dump`; without them there are no series. Without `season` no hour is known."""
        self.settings = settings
        self.season = season or NoSeason()
        self.statistics: Sequence[Statistic] = STATISTICS if season else WITHOUT_SEASON
        self.layout = layout(self.statistics)
        self.state = SeriesState.unpacked(columns) if columns else SeriesState.zeros(0, self.layout)

    def __len__(self) -> int:
        return len(self.state)

    def add(self, is_count: Bools, past_windows: Ints, window: int) -> Ints:
        """Append series and return their rows. A count that is new was zero in `past_windows` windows before."""
        first, fresh = len(self), SeriesState.zeros(len(is_count), self.layout)
        fresh.is_count[:] = is_count
        start_counts(fresh, np.where(is_count, past_windows, 0), window)
        self.state = self.state.followed_by(fresh)
        self.season.grow(len(self))
        return np.arange(first, len(self))

    def retain(self, rows: Ints) -> None:
        """Keep only these series; they are renumbered, in this order."""
        self.state = self.state.take(rows)
        self.season.retain(rows)

    def is_count(self, rows: Ints | None = None) -> Bools:
        return np.asarray((self.state.is_count if rows is None else self.state.is_count[rows]) > 0)

    def phase(self, rows: Ints) -> Ints:
        return self.state.phase[rows].astype(np.int64)

    def seen(self, rows: Ints) -> Ints:
        return self.state.seen[rows]

    def figures(self) -> dict[str, list[Any]]:
        """The columns of the state, as lists."""
        return {name: column.tolist() for name, column in self.dump().items()}

    def dump(self) -> Columns:
        """The constructor's `columns`."""
        return self.state.packed()

    def unresolved(self, rows: Ints) -> Floats:
        return rounding.unresolved(self.state, rows)

    def step(
        self,
        window: int | Ints,
        rows: Ints,
        value: Floats,
        samples: Floats,
        threshold: float | Floats,
        *,
        unresolved: Floats | float = 0.0,
    ) -> Judgement:
        """Judge, then learn, one window; see Model.step.

        Below the threshold, from EPISODE_SCORE on, an episode takes its course without an alert.
        """
        every = len(rows) == len(self) and bool((rows == np.arange(len(self))).all())
        state = self.state if every else self.state.take(rows)
        x = to_model_scale(value, state.is_count)
        start_new(state, x, samples, window)
        hour = hour_of(((np.broadcast_to(window, rows.shape) - 1) * self.settings.window_seconds).astype(np.int64))
        usual = self.season.judge(rows, hour, x)
        evidence = weigh(state, x, value, samples, window, hour=usual, unresolved=unresolved)
        raw = [statistic.score(evidence) for statistic in self.statistics]
        score, statistic = self._joined(state, raw)
        before = _scored_before(state, threshold)
        turn = turns(state, x, score >= np.minimum(EPISODE_SCORE, threshold), self.settings)
        news = score - before
        state.loudest = np.maximum(score, before)
        learn_hours(state, evidence, self.season, rows=rows, hour=hour, settings=self.settings)
        learn(state, evidence, raw, turn, self.settings)
        enter_phases(state, evidence, statistic, turn)
        state.last, state.last_window = x, np.array(np.broadcast_to(window, rows.shape), np.int64)
        if not every:
            self.state.put(rows, state)
        expected, low, high = (to_own_scale(one, state.is_count) for one in (state.expected, state.low, state.high))
        settled = (turn == Turn.CHANGED) & (score >= threshold)
        return Judgement(rows, score, news, news >= threshold, settled, statistic, turn, value, expected, low, high)

    def _joined(self, state: SeriesState, raw: Sequence[Floats]) -> tuple[Floats, Ints]:
        """The score of all statistics together, and which of them has the greatest; 0 while a series warms up."""
        scores = np.stack([tail.calibrated(score) for tail, score in zip(state.tails, raw, strict=True)])
        # The smallest of several probabilities, times their number (Bonferroni).
        score = np.maximum(scores.max(axis=0) - ln(np.maximum((scores > 0).sum(axis=0), 1)), 0.0)
        return score * (state.seen >= self.settings.warmup_windows), scores.argmax(axis=0)


def _scored_before(state: SeriesState, threshold: float | Floats) -> Floats:
    """The greatest score that the episode of each series has had.

    The window in which a burst begins counts a part of it only: what that one didn't alert, the next may.
    """
    is_onset = (state.is_count > 0) & (state.run == 1) & (state.loudest < threshold)
    return np.where((state.phase == Phase.EPISODE) & ~is_onset, state.loudest, 0.0)
