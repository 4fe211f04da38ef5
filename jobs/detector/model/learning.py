"""What a window teaches: priors of new series, and the posteriors after each window."""

from collections.abc import Sequence

import numpy as np

from jobs.detector.model.anscombe import to_model_scale
from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.model.conjugate import JEFFREYS, GammaPoisson, Nig, Tail, replaced_where
from jobs.detector.model.evidence import Evidence
from jobs.detector.model.protocol import Phase, Turn
from jobs.detector.model.season import HOURS, Season
from jobs.detector.model.series_state import SeriesState
from jobs.detector.settings import DetectorSettings

USUAL_SURPRISE = 3.0  # the mean surprise above which forgetting speeds up
MOST_SURPRISE = 20.0  # that one window adds to it
SURPRISE_MEMORY = 20.0  # windows
FASTEST_MEMORY = 10.0
SAME = 1e-4  # a smaller relative change is none
POISSON_TRUST = 10.0  # half the windows that the prior is worth by which a count on Anscombe's scale has variance 1
NO_DRIFT = 20.0  # windows that the prior of steps without drift is worth


def start_counts(state: SeriesState, past_windows: Ints, window: int) -> None:
    """A template that was never seen was seen zero times in each window that its machine has lived."""
    is_count, past = past_windows > 0, past_windows.astype(np.float64)
    zero = to_model_scale(np.zeros(len(past)), state.is_count)
    posterior = Nig(zero, past, 0.5 * past + POISSON_TRUST, 0.5 * past + POISSON_TRUST)
    rate = GammaPoisson(np.full_like(past, JEFFREYS), past)
    _start(state, is_count, posterior, rate)
    state.last = np.where(is_count, zero, 0.0)
    state.last_window[:] = window - 1
    state.seen = np.where(is_count, past_windows, 0)
    state.samples[is_count] = 1.0
    state.sustained[:] = 1.0


def start_new(state: SeriesState, x: Floats, samples: Floats, window: int | Ints) -> None:
    """The first window is the prior's centre; a spread of 1 % of it (of counts: 1) counts as one observation."""
    new = state.seen == 0
    if not new.any():
        return
    is_count = state.is_count > 0
    half = np.where(is_count, POISSON_TRUST, 0.5)
    spread = np.where(is_count, 1.0, 0.01 * np.abs(x) + 1e-9)
    prior = Nig(x, np.full_like(x, 1e-3), half, half * np.square(spread))
    _start(state, new, prior, GammaPoisson(np.full_like(x, JEFFREYS), np.full_like(x, 1e-3)))
    state.last = np.where(new, x, state.last)
    state.last_window = np.where(new, window, state.last_window)
    state.sustained = np.where(new, 1.0, state.sustained)
    state.samples = np.where(new, samples, state.samples)


def _start(state: SeriesState, where: Bools, prior: Nig, rate: GammaPoisson) -> None:
    state.normal = replaced_where(where, prior, state.normal)
    state.jumps = replaced_where(where, _step_prior(prior), state.jumps)
    state.rate = replaced_where(where, rate, state.rate)


def _step_prior(level: Nig) -> Nig:
    """Steps between independent levels: twice their variance, and no drift, which is believed like NO_DRIFT windows."""
    return Nig(np.zeros_like(level.mu), np.full_like(level.mu, NO_DRIFT), level.alpha, 2.0 * level.beta)


def learn_hours(
    state: SeriesState, evidence: Evidence, season: Season, *, rows: Ints, hour: Ints, settings: DetectorSettings
) -> None:
    """Add the window to the profile of its hour, unless an episode is on."""
    share = min(1.0, HOURS / settings.windows_per_day) * evidence.hour_trust() * (state.phase != Phase.EPISODE)
    season.learn(rows, hour, evidence.x, share)


def learn(
    state: SeriesState, evidence: Evidence, scores: Sequence[Floats], turn: Ints, settings: DetectorSettings
) -> None:
    """Update the posteriors: in an episode the challenger learns and the old normal rests.

    `scores` are those of the statistics before they were calibrated.
    """
    episode = state.phase == Phase.EPISODE
    normal = ~episode & (turn != Turn.STARTED)
    _learn_surprise(state, evidence.level_score, episode)
    state.sustained = np.where(normal, evidence.recent_level_score, 1.0)
    memory = settings.memory_windows / (1.0 + 20.0 * np.maximum(state.surprise - USUAL_SURPRISE, 0.0))
    _learn_levels(state, evidence, normal, 1.0 - 1.0 / np.maximum(memory, FASTEST_MEMORY))
    _learn_challenger(state, evidence, episode)
    slow = 1.0 - 0.25 / settings.memory_windows
    feed = ~episode & (state.seen >= settings.warmup_windows)
    state.tails = tuple(_fed(tail, score, slow, feed) for tail, score in zip(state.tails, scores, strict=True))
    _learn_changes(state, evidence)
    state.seen += 1
    state.samples += (evidence.samples - state.samples) / np.minimum(state.seen, memory)


def _learn_surprise(state: SeriesState, level: Floats, episode: Bools) -> None:
    surprise = state.surprise + (np.minimum(level, MOST_SURPRISE) - state.surprise) / SURPRISE_MEMORY
    state.surprise = np.where(episode, state.surprise, surprise)


def _learn_levels(state: SeriesState, evidence: Evidence, normal: Bools, keep: Floats) -> None:
    trust = evidence.level_trust()
    level = evidence.normal.forgotten(keep).updated(evidence.x, evidence.weight, trust)
    state.normal = replaced_where(normal, level, state.normal)
    state.rate = replaced_where(normal, evidence.rate.forgotten(keep).updated(evidence.count, trust), state.rate)
    jumps = evidence.jumps.forgotten(keep).updated(evidence.jump, evidence.jump_weight, evidence.step_trust())
    state.jumps = replaced_where(evidence.has_past, jumps, state.jumps)


def _learn_challenger(state: SeriesState, evidence: Evidence, episode: Bools) -> None:
    level = state.challenger.updated(evidence.x, evidence.weight, evidence.whole)
    state.challenger = replaced_where(episode, level, state.challenger)
    rate = state.challenger_rate.updated(evidence.count, evidence.whole)
    state.challenger_rate = replaced_where(episode, rate, state.challenger_rate)


def _fed(tail: Tail, score: Floats, keep: float, feed: Bools) -> Tail:
    return replaced_where(feed, tail.updated(score, keep), tail)


def _learn_changes(state: SeriesState, evidence: Evidence) -> None:
    change = np.abs(evidence.jump)
    changed = evidence.has_past & (change > SAME * np.abs(state.last))
    finest = np.where(state.changes > 0, np.minimum(change, state.quantum), change)
    state.quantum = np.where(changed, finest, state.quantum)
    state.changes += changed
