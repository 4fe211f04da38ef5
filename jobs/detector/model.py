"""The detector's model: every series of a shard at once, one window at a time, in constant state.

Each series holds, in constant state, whatever its history (the same on larger scales: model_scales):

- *level*, normal-inverse-gamma over window means: is this value like the past?
- *step*, normal-inverse-gamma over differences of successive windows: is this a jump? (drifting series)
- *rate*, gamma-Poisson over counts (log templates; an absent one is a zero). A count is also judged on Anscombe's
  scale by level and step; the mixture of both models forgives overdispersion.
- *season*, a profile of the hours of a working day and of a weekend: is it usual at this time? (model_season)
- *spell*, the mean level score of the last windows: is it a little strange for too long?
- a *tail* per statistic: what past scores were like, so that a score means what it says on real data.
- an *episode*: a surprise starts it; the model of the old normal rests while a challenger learns the new one.
  Values that return end it (anomaly); if they stay, the challenger takes over (state change) and the old model is
  kept for a while, to be reinstated if the values return.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from jobs.detector.model_conjugate import JEFFREYS, GammaPoisson, Nig, Tail
from jobs.detector.model_season import BINS, HOURS, VISITS, Season, hour_of
from jobs.detector.model_tails import MAX_SCORE, Floats, mean_score
from jobs.detector.settings import DetectorSettings

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

LN2 = float(np.log(2.0))
RETURNED = 2  # windows in a row inside the expected interval that end an episode
RARE_CHANGES = 8  # fewer changes than this say little about the size of a change
QUIET_SURPRISE = 3.0  # the mean surprise above which forgetting speeds up
FASTEST_MEMORY = 10.0
TRUST_POWER = 3.0  # how fast the influence of an outlier falls beyond three scales
SURPRISE_MEMORY = 20.0  # windows
SPELL_MEMORY = 5.0  # windows
SPELL_CAP = 6.0
SPELL_AFTER = 40  # windows; before, the level's own error makes neighbouring scores alike
SAME = 1e-4  # a smaller relative change is none
POISSON_TRUST = 10.0  # half the windows that the prior is worth by which a count on Anscombe's scale has variance 1
NO_DRIFT = 20.0  # windows that the prior of steps without drift is worth
SHRINKAGE = 5.0  # half the windows that an autocorrelation needs to be believed by half
EPISODE_SCORE = 6.0  # from here on a surprise is followed, whether it is told or not
INTERVAL = 0.995  # the quantile at the expected interval's upper end


class Phase(IntEnum):
    NORMAL = 0
    EPISODE = 1  # surprised: the challenger learns
    CHANGED = 2  # the challenger took over; the old model can still come back


class Turn(IntEnum):
    """What a window did to a series."""

    NONE = 0
    STARTED = 1  # an episode
    PASSED = 2  # the values returned: it was an anomaly
    CHANGED = 3  # they stayed: a change of state
    UNDONE = 4  # the change of state reverted
    LEARNED = 5  # the change of state is the new normal


class Statistic(IntEnum):
    LEVEL = 0
    STEP = 1
    SEASON = 2
    SPELL = 3


_FLOATS = (
    *("mu", "kappa", "alpha", "beta", "shape", "rate"),
    *("other_mu", "other_kappa", "other_alpha", "other_beta", "other_shape", "other_rate"),
    *("step_mu", "step_kappa", "step_alpha", "step_beta"),
    *(f"{statistic.name.lower()}_{field}" for statistic in Statistic for field in Tail._fields),
    *("samples", "last", "quantum", "surprise", "spell", "expected", "low", "high", "loudest"),
    *("hours_visits", "hours_squares"),
)
_INTS = ("last_window", "seen", "changes", "run", "back", "outside")
_BYTES = ("is_count", "phase")
FIELDS: dict[str, np.dtype] = (
    {name: np.dtype(np.float64) for name in _FLOATS}
    | {name: np.dtype(np.int64) for name in _INTS}
    | {name: np.dtype(np.uint8) for name in _BYTES}
)

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Judgement:
    """One window of some series; arrays of one element a row. Values are in the series' own unit."""

    rows: Ints
    score: Floats  # -ln of the calibrated probability of an outcome less likely than this one
    news: Floats  # the score given what the episode has scored before: -ln of the ratio of the probabilities
    told: Bools  # whether that is worth to be told
    statistic: Ints  # the Statistic that spoke loudest
    turn: Ints  # Turn
    observed: Floats
    expected: Floats  # this and the 99 % interval are of the newest episode
    low: Floats
    high: Floats


class Model:
    """All series of one shard. `columns[name][row]` is the state; see FIELDS."""

    def __init__(
        self, settings: DetectorSettings, columns: Columns | None = None, season: Season | None = None
    ) -> None:
        self.settings = settings
        self.columns = columns or {name: np.zeros(0, kind) for name, kind in FIELDS.items()}
        self.season = season or Season()

    def __len__(self) -> int:
        return len(self.columns["seen"])

    def add(self, is_count: Bools, past_windows: Ints, window: int) -> Ints:
        """Append series and return their rows. A count that is new was zero in `past_windows` windows before."""
        first = len(self)
        fresh = {name: np.zeros(len(is_count), kind) for name, kind in FIELDS.items()}
        fresh["is_count"][:] = is_count
        _begin_counts(fresh, np.where(is_count, past_windows, 0), window)
        self.columns = {name: np.concatenate([old, fresh[name]]) for name, old in self.columns.items()}
        self.season.grow(len(self))
        return np.arange(first, len(self))

    def retain(self, rows: Ints) -> None:
        """Drop all series but these; they are numbered anew, in this order."""
        self.columns = {name: column[rows] for name, column in self.columns.items()}
        self.season.retain(rows)

    def step(self, window: int | Ints, rows: Ints, value: Floats, samples: Floats, threshold: float) -> Judgement:
        """Judge, then learn, one window of the series `rows`: a metric's mean or a template's count, and its samples.

        `window` is the window's number (end time / size); `threshold` the score from which a surprise is told.
        Below it, from EPISODE_SCORE on, an episode takes its course untold.
        """
        every = len(rows) == len(self) and bool((rows == np.arange(len(self))).all())
        part = dict(self.columns) if every else {name: column[rows] for name, column in self.columns.items()}
        x = _to_model_scale(value, part["is_count"])
        _begin(part, x, samples, window)
        hour = hour_of(((np.broadcast_to(window, rows.shape) - 1) * self.settings.window_seconds).astype(np.int64))
        usual = self.season.judge(rows, hour, x, part["hours_squares"] / np.maximum(part["hours_visits"], 1e-12))
        evidence = Evidence.weigh(part, x, (value, samples), window, usual)
        scores = np.stack([_tail(part, _prefix(s)).calibrated(evidence.scores[s]) for s in Statistic])
        statistic = scores.argmax(axis=0)
        # The smallest of several probabilities, times their number (Bonferroni).
        score = np.maximum(scores.max(axis=0) - np.log(np.maximum((scores > 0).sum(axis=0), 1)), 0.0)
        score = score * (part["seen"] >= self.settings.warmup_windows)
        # The window in which a burst begins counts a part of it only: what that one didn't tell, the next may.
        is_onset = (part["is_count"] > 0) & (part["run"] == 1) & (part["loudest"] < threshold)
        before = np.where((part["phase"] == Phase.EPISODE) & ~is_onset, part["loudest"], 0.0)
        turn = self._turn(part, x, score >= min(EPISODE_SCORE, threshold))
        news = score - before
        part["loudest"] = np.maximum(score, before)
        self._learn_hours(part, evidence, rows, hour)
        self._learn(part, evidence, turn)
        _transit(part, evidence, statistic, turn)
        part["last"], part["last_window"] = x, np.array(np.broadcast_to(window, rows.shape), np.int64)
        self._store(part, None if every else rows)
        expected, low, high = (_to_own_scale(part[name], part["is_count"]) for name in ("expected", "low", "high"))
        return Judgement(rows, score, news, news >= threshold, statistic, turn, value, expected, low, high)

    def _store(self, part: Columns, rows: Ints | None) -> None:
        if rows is None:
            self.columns = part
            return
        for name, column in part.items():
            self.columns[name][rows] = column

    def _turn(self, part: Columns, x: Floats, alarm: Bools) -> Ints:
        """What this window does to each series' episode (Turn); counts its windows inside and outside."""
        episode, changed = part["phase"] == Phase.EPISODE, part["phase"] == Phase.CHANGED
        inside = (x >= part["low"]) & (x <= part["high"])
        part["run"] += episode | changed
        part["outside"] += ~inside
        part["back"] = np.where(inside, part["back"] + 1, 0)
        over = episode & (part["run"] >= self.settings.settle_windows)
        stays = over & (2 * part["outside"] > part["run"]) & (part["back"] < RETURNED)
        passed = (episode & (part["back"] >= RETURNED)) | (over & ~stays)
        undone = changed & alarm & inside
        started = alarm & ~episode & ~undone
        learned = changed & ~alarm & (part["run"] >= self.settings.undo_windows)
        turns = {Turn.STARTED: started, Turn.PASSED: passed, Turn.CHANGED: stays}
        turns |= {Turn.UNDONE: undone, Turn.LEARNED: learned}
        return np.select(list(turns.values()), [int(turn) for turn in turns], int(Turn.NONE))

    def _learn_hours(self, part: Columns, evidence: "Evidence", rows: Ints, hour: Ints) -> None:
        """Add the window to the profile of its hour, unless an episode is on."""
        share = min(1.0, HOURS / self.settings.windows_per_day) * evidence.hour_trust * (part["phase"] != Phase.EPISODE)
        added = self.season.learn(rows, hour, evidence.x, share)
        kept = 1.0 - share / (VISITS * BINS)
        part["hours_visits"] = part["hours_visits"] * kept + share
        part["hours_squares"] = part["hours_squares"] * kept + added

    def _learn(self, part: Columns, evidence: "Evidence", turn: Ints) -> None:
        """Update the posteriors: in an episode the challenger learns and the old normal rests."""
        episode = part["phase"] == Phase.EPISODE
        normal = ~episode & (turn != Turn.STARTED)
        feed = ~episode & (part["seen"] >= self.settings.warmup_windows)
        level = evidence.scores[Statistic.LEVEL]
        surprise = part["surprise"] + (np.minimum(level, 20.0) - part["surprise"]) / SURPRISE_MEMORY
        part["spell"] = np.where(normal, _spell(part["spell"], level), 1.0)
        part["surprise"] = np.where(episode, part["surprise"], surprise)
        memory = self.settings.memory_windows / (1.0 + 20.0 * np.maximum(part["surprise"] - QUIET_SURPRISE, 0.0))
        keep = 1.0 - 1.0 / np.maximum(memory, FASTEST_MEMORY)
        x, count, weight = evidence.x, evidence.count, evidence.weight
        _store_where(part, "", normal, evidence.normal.forgotten(keep).updated(x, weight, evidence.level_trust))
        _store_where(part, "", normal, evidence.rate.forgotten(keep).updated(count, evidence.level_trust))
        challenger, challenger_rate = _nig(part, "other_"), _rate(part, "other_")
        _store_where(part, "other_", episode, challenger.updated(x, weight, np.ones_like(x)))
        _store_where(part, "other_", episode, challenger_rate.updated(count, np.ones_like(x)))
        moved = part["seen"] > 0
        jumps = evidence.jumps.forgotten(keep).updated(x - part["last"], evidence.jump_weight, evidence.step_trust)
        _store_where(part, "step_", moved, jumps)
        slow = 1.0 - 0.25 / self.settings.memory_windows
        for statistic in Statistic:
            tail = _tail(part, _prefix(statistic)).updated(evidence.scores[statistic], slow)
            _store_where(part, _prefix(statistic), feed, tail)
        change = np.abs(x - part["last"])
        changed = moved & (change > SAME * np.abs(part["last"]))
        finest = np.where(part["changes"] > 0, np.minimum(change, part["quantum"]), change)
        part["quantum"] = np.where(changed, finest, part["quantum"])
        part["changes"] += changed
        part["seen"] += 1
        part["samples"] += (evidence.samples - part["samples"]) / np.minimum(part["seen"], memory)


@dataclass(frozen=True)
class Evidence:
    """One window against the posteriors: raw scores and what they were made of."""

    x: Floats  # on the model's scale
    count: Floats
    samples: Floats
    weight: Floats  # of the window mean: its samples beside the usual number, at most 1
    jump_weight: Floats
    normal: Nig
    rate: GammaPoisson
    jumps: Nig
    independence: Floats
    floor: Floats
    usual: tuple[Floats, ...]  # of the hour: expected value, scale, degrees of freedom
    scores: tuple[Floats, ...]  # by Statistic, as the model has them
    level_trust: Floats  # bounded influence of an outlier
    step_trust: Floats
    hour_trust: Floats

    @staticmethod
    def weigh(
        part: Columns, x: Floats, seen: tuple[Floats, Floats], window: int | Ints, usual: tuple[Floats, ...]
    ) -> "Evidence":
        value, samples = seen
        normal, jumps, rate = _nig(part, ""), _nig(part, "step_"), _rate(part, "")
        is_count = part["is_count"].astype(bool)
        weight = np.where(is_count, 1.0, np.clip(samples / part["samples"], 0.01, 1.0))
        # A step over a gap of n windows varies n times as much (random walk).
        jump_weight = weight / np.maximum(window - part["last_window"], 1)
        independence = _independence(normal, jumps)
        floor = np.where(is_count, 1.0, 0.5 * part["quantum"] + 1e-6 * np.abs(normal.mu) + 1e-12)
        jump = x - part["last"]
        whole = np.ones_like(x)
        limit = _rare_change_limit(part, x)
        level = np.minimum(normal.score(x, weight, independence, floor), limit)
        if is_count.any():
            level[is_count] = _mixture(level[is_count], _rate_rows(rate, is_count).score(value[is_count]))
        moved = part["seen"] > 0
        step = np.where(moved, np.minimum(jumps.score(jump, jump_weight, whole, floor), limit), 0.0)
        # Of autocorrelated windows fewer count.
        spell = mean_score(_spell(part["spell"], level), 1.0 + (2.0 * SPELL_MEMORY - 2.0) * independence)
        spell = spell * (part["seen"] >= SPELL_AFTER)
        return Evidence(
            x=x,
            count=np.where(is_count, value, 0.0),
            samples=samples,
            weight=weight,
            jump_weight=jump_weight,
            normal=normal,
            rate=rate,
            jumps=jumps,
            independence=independence,
            floor=floor,
            usual=usual[1:],
            scores=(level, step, np.minimum(usual[0], limit), spell),
            level_trust=_trust((x - normal.mu) / normal.scale(weight, independence, floor), limit < MAX_SCORE),
            hour_trust=np.where(usual[0] > 0, _trust((x - usual[1]) / usual[2], limit < MAX_SCORE), 1.0),
            step_trust=_trust((jump - jumps.mu) / jumps.scale(jump_weight, whole, floor), limit < MAX_SCORE),
        )

    def interval(self, at: Ints, last: Floats, statistic: Ints) -> tuple[Floats, Floats, Floats]:
        """Of some rows, on the model's scale: the loudest statistic's expected value and 99 % interval."""
        choices = [statistic[at] == Statistic.STEP, statistic[at] == Statistic.SEASON]
        mean, spread, freedom = (values[at] for values in self.usual)
        normal, jumps = (Nig(*(values[at] for values in posterior)) for posterior in (self.normal, self.jumps))
        floor, independence, whole = self.floor[at], self.independence[at], np.ones(len(at))
        scale = np.select(
            choices,
            [jumps.scale(self.jump_weight[at], whole, floor), spread],
            normal.scale(self.weight[at], independence, floor),
        )
        freedom = np.select(choices, [jumps.freedom(whole), freedom], normal.freedom(independence))
        center = np.select(choices, [last[at] + jumps.mu, mean], normal.mu)
        half = stdtrit(freedom, INTERVAL) * scale
        return center, center - half, center + half


def _transit(part: Columns, evidence: Evidence, statistic: Ints, turn: Ints) -> None:
    """Enter the phase that the turn leads to, and put the right posterior in charge."""
    started = turn == Turn.STARTED
    if started.any():
        _open_episode(part, evidence, statistic, started)
    _swap(part, turn == Turn.CHANGED)
    _store_where(part, "", turn == Turn.UNDONE, _nig(part, "other_"))
    _store_where(part, "", turn == Turn.UNDONE, _rate(part, "other_"))
    part["run"][turn == Turn.CHANGED] = 0
    part["phase"][started] = Phase.EPISODE
    part["phase"][turn == Turn.CHANGED] = Phase.CHANGED
    part["phase"][(turn == Turn.PASSED) | (turn == Turn.UNDONE) | (turn == Turn.LEARNED)] = Phase.NORMAL


def _open_episode(part: Columns, evidence: Evidence, statistic: Ints, started: Bools) -> None:
    at = np.flatnonzero(started)
    part["expected"][at], part["low"][at], part["high"][at] = evidence.interval(at, part["last"], statistic)
    one = np.ones_like(evidence.x)
    variance = np.maximum(evidence.normal.variance(), np.square(evidence.floor))
    _store_where(part, "other_", started, Nig(evidence.x, one, one, variance))
    _store_where(part, "other_", started, GammaPoisson(evidence.count + JEFFREYS, one))
    for name, value in (("run", 1), ("outside", 1), ("back", 0)):
        part[name][started] = value


def _swap(part: Columns, where: Bools) -> None:
    if not where.any():
        return
    for name in (*Nig._fields, *GammaPoisson._fields):
        part[name], part[f"other_{name}"] = (
            np.where(where, part[f"other_{name}"], part[name]),
            np.where(where, part[name], part[f"other_{name}"]),
        )


def _begin_counts(fresh: Columns, past_windows: Ints, window: int) -> None:
    """A template that was never seen was seen zero times in each window that its machine has lived."""
    is_count, past = past_windows > 0, past_windows.astype(np.float64)
    zero = _to_model_scale(np.zeros(len(past)), fresh["is_count"])
    posterior = Nig(zero, past, 0.5 * past + POISSON_TRUST, 0.5 * past + POISSON_TRUST)
    _store_where(fresh, "", is_count, posterior)
    _store_where(fresh, "step_", is_count, _step_prior(posterior))
    _store_where(fresh, "", is_count, GammaPoisson(np.full_like(past, JEFFREYS), past))
    fresh["last"] = np.where(is_count, zero, 0.0)
    fresh["last_window"][:] = window - 1
    fresh["seen"] = np.where(is_count, past_windows, 0)
    fresh["samples"][is_count] = 1.0
    fresh["spell"][:] = 1.0


def _begin(part: Columns, x: Floats, samples: Floats, window: int | Ints) -> None:
    """The first window is the prior's centre; a spread of 1 % of it (of counts: 1) counts as one observation."""
    new = part["seen"] == 0
    if not new.any():
        return
    is_count = part["is_count"] > 0
    half = np.where(is_count, POISSON_TRUST, 0.5)
    spread = np.where(is_count, 1.0, 0.01 * np.abs(x) + 1e-9)
    prior = Nig(x, np.full_like(x, 1e-3), half, half * np.square(spread))
    _store_where(part, "", new, prior)
    _store_where(part, "step_", new, _step_prior(prior))
    _store_where(part, "", new, GammaPoisson(np.full_like(x, JEFFREYS), np.full_like(x, 1e-3)))
    part["last"] = np.where(new, x, part["last"])
    part["last_window"] = np.where(new, window, part["last_window"])
    part["spell"] = np.where(new, 1.0, part["spell"])
    part["samples"] = np.where(new, samples, part["samples"])


def _step_prior(level: Nig) -> Nig:
    """Steps between independent levels: twice their variance, and no drift, which is believed like NO_DRIFT windows."""
    return Nig(np.zeros_like(level.mu), np.full_like(level.mu, NO_DRIFT), level.alpha, 2.0 * level.beta)


def _independence(normal: Nig, jumps: Nig) -> Floats:
    """Effective number of independent windows per window, (1 - r) / (1 + r), of autocorrelation r at lag one.

    r follows from von Neumann's ratio: the variance of the steps is 2 (1 - r) times that of the levels. Of few windows
    it is shrunk to none.
    """
    r = np.clip(1.0 - 0.5 * jumps.variance() / normal.variance(), 0.0, 0.98)
    r = r * normal.alpha / (normal.alpha + SHRINKAGE)
    return (1.0 - r) / (1.0 + r)


def _rare_change_limit(part: Columns, x: Floats) -> Floats:
    """The most that a change of a (nearly) constant metric can say.

    By Laplace's rule of succession it has the probability (changes + 1/2) / (windows + 1); its size, of which little
    is known, counts by a Pareto tail of exponent 1 relative to 1 % of the usual value.
    """
    seen, changes = part["seen"], part["changes"]
    size = np.abs(x - part["last"])
    size = size / (0.01 * np.maximum(np.abs(part["mu"]), 0.1 * size) + 1e-12)
    limit = np.log((seen + 1.0) / (changes + 0.5)) + np.log1p(size)
    rare = (changes < RARE_CHANGES) & (2 * changes < seen) & (part["is_count"] == 0)
    return np.where(rare, limit, MAX_SCORE)


def _trust(z: Floats, rarely_changes: Bools) -> Floats:
    """Weight of an observation z scales away: redescending beyond 3; all, while a scale is not yet known."""
    return np.where(rarely_changes, 1.0, np.minimum(1.0, (3.0 / np.maximum(np.abs(z), 1e-9)) ** TRUST_POWER))


def _spell(past: Floats, level: Floats) -> Floats:
    """The mean level score of the last windows, exponentially weighted; one alone says little."""
    return past + (np.minimum(level, SPELL_CAP) - past) / SPELL_MEMORY


def _mixture(first: Floats, second: Floats) -> Floats:
    """-ln of the tail of an even mixture of two models."""
    return np.maximum(LN2 - np.logaddexp(-first, -second), 0.0)


def _to_model_scale(value: Floats, is_count: NDArray[Any]) -> Floats:
    """Counts by Anscombe's transform (1948), 2 sqrt(k + 3/8): of variance 1 where k is Poisson."""
    return np.where(is_count > 0, 2.0 * np.sqrt(np.maximum(value, 0.0) + 0.375), value)


def _to_own_scale(x: Floats, is_count: NDArray[Any]) -> Floats:
    return np.where(is_count > 0, np.maximum(np.square(0.5 * np.maximum(x, 0.0)) - 0.375, 0.0), x)


def _prefix(statistic: Statistic) -> str:
    return f"{statistic.name.lower()}_"


def _nig(part: Columns, prefix: str) -> Nig:
    return Nig(*(part[prefix + field] for field in Nig._fields))


def _rate(part: Columns, prefix: str) -> GammaPoisson:
    return GammaPoisson(*(part[prefix + field] for field in GammaPoisson._fields))


def _rate_rows(rate: GammaPoisson, where: Bools) -> GammaPoisson:
    return GammaPoisson(*(values[where] for values in rate))


def _tail(part: Columns, prefix: str) -> Tail:
    return Tail(*(part[prefix + field] for field in Tail._fields))


def _store_where(part: Columns, prefix: str, where: Bools, posterior: Nig | GammaPoisson | Tail) -> None:
    for field, values in zip(posterior._fields, posterior, strict=True):
        part[prefix + field] = np.where(where, values, part[prefix + field])
