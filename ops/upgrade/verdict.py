"""Whether a new image is at work, of a sequence of looks at the chain: a pure function of them.

A query is ready when a new copy of it writes, has gone on for a while without being started again, and what it has not
read is no more than before, but for what always is unread between two batches.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ops.upgrade.looks import Look, Stand
from ops.upgrade.mark import Before, Mark

STARTS = 3  # of copies; with more it isn't the end of the old copy that has disturbed the new one
BATCHES, SECONDS = 12, 60.0  # that a copy must have gone on for
# Or so many seconds, where hardly a batch comes: some queries have one a minute, or nothing to read.
LONG_SECONDS, FEW_PER_SECOND = 180.0, 1 / 30
TIMES = 3  # the lag of before that is as small as before: two looks at a saw's teeth
UNREAD_SECONDS = 10.0  # what arrives in them is always unread
FALLS_TO = 0.75  # of what it was, in a quarter of the time that was watched: it falls


@dataclass(frozen=True)
class Verdict:
    """What the looks say, with the line for a person."""

    state: Literal["ready", "waiting", "failing"]
    why: str


class _At(NamedTuple):
    at: float
    stand: Stand


def judge(mark: Mark, looks: Sequence[Look], *, is_due: bool = False) -> Verdict:
    """All queries at once: the first that fails, else the first that isn't ready.

    If it `is_due`, no more looks follow, and a lag that falls without being small yet is enough.
    """
    found = {
        query: _of_query(before, [_At(look.at, look.stands[query]) for look in looks if query in look.stands], is_due)
        for query, before in mark.queries.items()
    }
    for state in ("failing", "waiting"):
        for query, verdict in found.items():
            if verdict.state == state:
                return Verdict(verdict.state, f"{query}: {verdict.why}")
    return Verdict("ready", f"each of {len(found)} queries goes on; their lag is as before, or falls")


def _of_query(before: Before, seen: Sequence[_At], is_due: bool) -> Verdict:
    new = [one for one in seen if not before.owner or one.stand.owner not in ("", before.owner)]
    if not new:
        return Verdict("waiting", "no copy of the new image has begun to write")
    starts = len(dict.fromkeys(one.stand.owner for one in new))
    if starts > STARTS:
        seconds = new[-1].at - new[0].at
        return Verdict("failing", f"was started {starts} times in {seconds:.0f} s; its log says why it ends")
    stay = [one for one in new if one.stand.owner == new[-1].stand.owner]
    seconds, batches = stay[-1].at - stay[0].at, stay[-1].stand.batches - stay[0].stand.batches
    if not _has_gone_on(seconds, batches):
        again = f", started {starts} times" if starts > 1 else ""
        return Verdict("waiting", f"has written {batches} batches in {seconds:.0f} s{again}")
    return _of_lag(before, stay, is_due)


def _has_gone_on(seconds: float, batches: int) -> bool:
    """Whether a copy has gone on for long enough: for BATCHES, or for longer where hardly any come."""
    if batches >= BATCHES:
        return seconds >= SECONDS
    return seconds >= LONG_SECONDS and batches <= seconds * FEW_PER_SECOND


def _of_lag(before: Before, stay: Sequence[_At], is_due: bool) -> Verdict:
    """Of the looks at a copy that goes on."""
    lag, usual = _largest_lag(stay, stay[-1].at - SECONDS), _usual_lag(before, stay)
    if lag <= usual or (is_due and _falls(stay)):
        return Verdict("ready", "")
    return Verdict("waiting", f"its lag does not fall: {lag:,} records, {usual:,} are usual")


def _usual_lag(before: Before, stay: Sequence[_At]) -> int:
    """What may be unread as well as before the upgrade, or of the records that arrive now."""
    first, last = stay[0], stay[-1]
    rate = (last.stand.end - first.stand.end) / (last.at - first.at)
    return max(TIMES * before.lag, round(UNREAD_SECONDS * rate))


def _falls(stay: Sequence[_At]) -> bool:
    """Whether the last quarter of the looks has seen a lag that is clearly smaller than the quarter before it had."""
    first, last = stay[0].at, stay[-1].at
    late = last - (last - first) / 4
    earlier = [one for one in stay if one.at < late]
    return _largest_lag(stay, late) <= FALLS_TO * _largest_lag(earlier, last - (last - first) / 2)


def _largest_lag(stay: Sequence[_At], since: float) -> int:
    return max((one.stand.lag for one in stay if one.at >= since), default=0)
