"""What a sequence of looks says of a new image, for each way in which one goes well or badly."""

import math

import pytest

from ops.upgrade.looks import Look, Stand
from ops.upgrade.mark import Before, Mark
from ops.upgrade.verdict import Verdict, judge

OLD, RATE, EVERY = "old", 100, 2  # records a second arrive; a look each so many seconds
BACKLOG = 60 * RATE  # of the minute in which no copy ran


def mark(**queries):
    return Mark(mode="checkpoint", taken="now", queries=queries or {"statistics": Before(owner=OLD, lag=4 * RATE)})


def watched(seconds, owner, batches, lag, rate=RATE, query="statistics"):
    """The looks at a query whose owner, batches and lag are functions of the time."""
    return [
        Look(at, {query: Stand(owner(at), batches(at), round(lag(at)), 10_000 + rate * at)})
        for at in range(0, seconds + 1, EVERY)
    ]


def steady(_):
    return "new"


def works_off(at):
    """A backlog that is read within half a minute, then the teeth of a saw of batches each four seconds."""
    return BACKLOG * max(0, 30 - at) / 30 + RATE * (at % 4)


def test_a_good_image_is_ready_once_it_has_gone_on_for_a_while():
    looks = watched(100, steady, lambda at: 500 + at // 4, works_off)
    states = [judge(mark(), looks[: number + 1]) for number in range(len(looks))]
    assert states[0] == Verdict("waiting", "statistics: has written 0 batches in 0 s")
    ready = next(number for number, one in enumerate(states) if one.state == "ready")
    assert looks[ready].at == pytest.approx(86, abs=6)  # its lag of the last minute is small
    assert {one.state for one in states[:ready]} == {"waiting"} and {one.state for one in states[ready:]} == {"ready"}


def test_while_the_old_copy_writes_nothing_is_known():
    looks = watched(300, lambda _: OLD, lambda at: at, lambda _: 0)
    assert judge(mark(), looks, is_due=True) == Verdict(
        "waiting", "statistics: no copy of the new image has begun to write"
    )


def test_an_image_that_ends_at_once_never_writes():
    looks = watched(600, lambda _: OLD, lambda _: 500, lambda at: RATE * at)
    assert judge(mark(), looks, is_due=True).state == "waiting"


def crashing(at_batch, batch_seconds, start_seconds):
    """An image that ends within a batch, and what it has done by then: (owner, batches, lag) by time."""
    cycle = (at_batch - 1) * batch_seconds + start_seconds

    def owner(at):
        return f"new {at // cycle}"

    def batches(at):
        return 500 + at // cycle * (at_batch - 1) + min(at_batch - 1, at % cycle // batch_seconds)

    def lag(at):
        return RATE * (at % cycle) if at % cycle > (at_batch - 1) * batch_seconds else RATE * (at % batch_seconds)

    return owner, batches, lag


@pytest.mark.parametrize("batch_seconds", [2, 4, 8, 16, 20, 28])
def test_an_image_that_ends_at_its_tenth_batch_is_never_ready(batch_seconds):
    looks = watched(600, *crashing(10, batch_seconds, 40))
    states = [judge(mark(), looks[: number + 1], is_due=True) for number in range(len(looks))]
    assert "ready" not in {one.state for one in states}
    assert states[-1].state == "failing" or batch_seconds > 8


def test_one_that_is_started_again_and_again_is_given_up_before_the_deadline():
    looks = watched(600, *crashing(10, 2, 40))
    failing = [one for number in range(len(looks)) if (one := judge(mark(), looks[: number + 1])).state == "failing"]
    assert failing[0] == Verdict("failing", "statistics: was started 4 times in 174 s; its log says why it ends")


def test_an_image_that_is_slower_than_what_arrives_is_not_ready():
    looks = watched(600, steady, lambda at: 500 + at // 30, lambda at: BACKLOG + 0.9 * RATE * at)
    assert judge(mark(), looks, is_due=True) == Verdict(
        "waiting", "statistics: its lag does not fall: 60,000 records, 1,200 are usual"
    )


def test_one_that_keeps_up_ten_times_as_slowly_as_before_is_not_ready():
    """Its batches take twenty seconds each, so that much more is unread all the time."""
    lag = lambda at: max(BACKLOG - 3 * RATE * at, RATE * (10 + at % 20))  # noqa: E731
    looks = watched(600, steady, lambda at: 500 + at // 20, lag)
    found = judge(mark(), looks, is_due=True)
    assert found == Verdict("waiting", "statistics: its lag does not fall: 2,800 records, 1,200 are usual")


def test_a_long_backlog_that_falls_is_enough_at_the_deadline_and_not_before():
    looks = watched(600, steady, lambda at: 500 + at // 4, lambda at: 3600 * RATE - 5 * RATE * at)
    assert judge(mark(), looks).state == "waiting"
    assert judge(mark(), looks, is_due=True).state == "ready"


def test_a_query_that_has_nothing_to_read_is_ready_after_the_longer_time():
    quiet = mark(**{"archive.alerts": Before(owner=OLD)})
    looks = watched(178, steady, lambda _: 3, lambda _: 0, rate=0, query="archive.alerts")
    assert judge(quiet, looks).why == "archive.alerts: has written 0 batches in 178 s"
    looks = watched(180, steady, lambda _: 3, lambda _: 0, rate=0, query="archive.alerts")
    assert judge(quiet, looks).state == "ready"


def test_a_batch_that_never_ends_is_not_ready():
    looks = watched(600, steady, lambda _: 500, lambda at: RATE * at)
    assert judge(mark(), looks, is_due=True).state == "waiting"


def test_a_job_without_an_owner_is_judged_by_its_lag():
    indexer = mark(indexer=Before(lag=50))
    fast = watched(180, lambda _: "", lambda _: 0, lambda at: 40 * (at % 4), query="indexer")
    assert judge(indexer, fast) == Verdict("ready", "each of 1 queries goes on; their lag is as before, or falls")
    stands = watched(180, lambda _: "", lambda _: 0, lambda at: RATE * at, query="indexer")
    assert judge(indexer, stands, is_due=True).why.startswith("indexer: its lag does not fall")


def test_a_restart_at_the_beginning_is_no_failure():
    owner = lambda at: "new 0" if at < 10 else "new 1"  # noqa: E731
    looks = watched(120, owner, lambda at: 500 + at // 4, works_off)
    assert judge(mark(), looks[:20]).why == "statistics: has written 7 batches in 28 s, started 2 times"
    assert judge(mark(), looks).state == "ready"


def test_the_first_that_fails_is_told_before_those_that_are_waited_for():
    both = mark(enrichment=Before(owner=OLD), statistics=Before(owner=OLD))
    failing = watched(600, *crashing(10, 2, 40))
    looks = [
        Look(one.at, {"enrichment": Stand(OLD, 1, 0, 0), "statistics": one.stands["statistics"]}) for one in failing
    ]
    assert judge(both, looks).why.startswith("statistics: was started")
    assert judge(both, looks[:2]).why == "enrichment: no copy of the new image has begun to write"


def test_all_queries_must_be_ready():
    both = mark(statistics=Before(owner=OLD, lag=math.ceil(4 * RATE)), detector=Before(owner=OLD))
    looks = [
        Look(one.at, one.stands | {"detector": Stand("new" if one.at > 50 else OLD, int(one.at), 0, 0)})
        for one in watched(110, steady, lambda at: 500 + at // 4, works_off)
    ]
    assert judge(both, looks).why == "detector: has written 58 batches in 58 s"
