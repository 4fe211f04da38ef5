"""The course of a surprise: when an episode starts and ends, and which posterior is in charge."""

import numpy as np

from jobs.detector.model.arrays import Bools, Floats, Ints
from jobs.detector.model.conjugate import JEFFREYS, GammaPoisson, Nig, replaced_where
from jobs.detector.model.evidence import Evidence
from jobs.detector.model.protocol import Phase, Turn
from jobs.detector.model.series_state import SeriesState
from jobs.detector.model.statistics import interval
from jobs.detector.settings import DetectorSettings

EPISODE_SCORE = 6.0  # from here on a surprise is followed, whether it is alerted or not
RETURNED = 2  # windows in a row inside the expected interval that end an episode


def turns(state: SeriesState, x: Floats, alarm: Bools, settings: DetectorSettings) -> Ints:
    """What this window does to each series' episode (Turn); counts its windows inside and outside."""
    episode, changed = state.phase == Phase.EPISODE, state.phase == Phase.CHANGED
    inside = (x >= state.low) & (x <= state.high)
    state.run += episode | changed
    state.outside += ~inside
    state.back = np.where(inside, state.back + 1, 0)
    over = episode & (state.run >= settings.settle_windows)
    stays = over & (2 * state.outside > state.run) & (state.back < RETURNED)
    passed = (episode & (state.back >= RETURNED)) | (over & ~stays)
    undone = changed & alarm & inside
    started = alarm & ~episode & ~undone
    learned = changed & ~alarm & (state.run >= settings.undo_windows)
    # The first that holds counts.
    found = {Turn.STARTED: started, Turn.PASSED: passed, Turn.CHANGED: stays, Turn.UNDONE: undone}
    found[Turn.LEARNED] = learned
    return np.select(list(found.values()), [int(turn) for turn in found], int(Turn.NONE))


def enter_phases(state: SeriesState, evidence: Evidence, statistic: Ints, turn: Ints) -> None:
    """Enter the phase that the turn leads to, and put the right posterior in charge."""
    started, changed, undone = turn == Turn.STARTED, turn == Turn.CHANGED, turn == Turn.UNDONE
    if started.any():
        _open(state, evidence, statistic, started)
    if changed.any():
        _swap(state, changed)
    state.normal = replaced_where(undone, state.challenger, state.normal)
    state.rate = replaced_where(undone, state.challenger_rate, state.rate)
    state.run[changed] = 0
    state.phase[started] = Phase.EPISODE
    state.phase[changed] = Phase.CHANGED
    state.phase[(turn == Turn.PASSED) | undone | (turn == Turn.LEARNED)] = Phase.NORMAL


def _open(state: SeriesState, evidence: Evidence, statistic: Ints, started: Bools) -> None:
    at = np.flatnonzero(started)
    state.expected[at], state.low[at], state.high[at] = interval(evidence, at, statistic)
    one = evidence.whole
    variance = np.maximum(evidence.normal.variance(), np.square(evidence.floor))
    state.challenger = replaced_where(started, Nig(evidence.x, one, one, variance), state.challenger)
    rate = GammaPoisson(evidence.count + JEFFREYS, one)
    state.challenger_rate = replaced_where(started, rate, state.challenger_rate)
    state.run[started], state.outside[started], state.back[started] = 1, 1, 0


def _swap(state: SeriesState, where: Bools) -> None:
    """The challenger takes over; what was normal is kept in its place."""
    old, new, old_rate, new_rate = state.normal, state.challenger, state.rate, state.challenger_rate
    state.normal, state.challenger = replaced_where(where, new, old), replaced_where(where, old, new)
    state.rate, state.challenger_rate = (
        replaced_where(where, new_rate, old_rate),
        replaced_where(where, old_rate, new_rate),
    )
