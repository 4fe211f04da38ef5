import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.table import JOBS
from ops.savepoints import cut
from ops.savepoints.cut import check_consistent, exclusive_topics, last_first

TOPICS = load_topics()


def test_a_job_is_taken_after_all_that_read_from_it():
    order = last_first(JOBS.enabled(["rules"]), TOPICS)
    assert sorted(order) == sorted(JOBS.enabled(["rules"]))
    place = {job: number for number, job in enumerate(order)}
    chain = ("enrichment", "statistics", "detector", "incidents")
    assert [place[job] for job in chain] == sorted((place[job] for job in chain), reverse=True)
    for job in ("rules", "indexer", "archive"):
        assert place[job] < place["enrichment"]


def test_only_the_topics_of_one_writer_have_ends_that_are_known():
    assert exclusive_topics("enrichment", TOPICS) == ["events"]
    assert exclusive_topics("statistics", TOPICS) == ["statistics", "statistics.early"]
    assert exclusive_topics("archive", TOPICS) == []


def test_no_job_may_have_read_more_than_its_writer_has_written():
    ends = {("events", 0): 10}
    check_consistent({"statistics": {("events", 0): 10}, "archive.log": {("events", 0): 3, ("x", 0): 99}}, ends)
    with pytest.raises(UserError, match="statistics: has read events/0 until 11, but its writer is kept as of 10"):
        check_consistent({"statistics": {("events", 0): 11}}, ends)


class Log:
    def ends(self, topics):
        return dict.fromkeys([(topic, 0) for topic in topics], 70)


@pytest.fixture
def done(monkeypatch):
    """How many batches a query has done, each time that it is asked; None while it writes one."""

    def set_to(*answers):
        left = list(answers)
        monkeypatch.setattr(cut, "_done", lambda *_: left.pop(0))
        monkeypatch.setattr(cut, "_wait_for_note", lambda *_: None)
        return left

    return set_to


def test_the_ends_are_those_between_two_batches(done):
    left = done(5, None, None, 6, 6, 7, 7, 7, "never asked")
    assert cut.settle("detector", "detector", None, TOPICS, Log()) == cut.Stand(6, {("novelties", 0): 70})
    assert left == ["never asked"]


def test_a_query_that_has_done_nothing_is_left_out(done):
    done(0, 0)
    assert cut.settle("archive.alerts", "archive", None, TOPICS, Log()) is None


def test_a_batch_that_is_never_completed_is_named(done, monkeypatch):
    monkeypatch.setattr(cut, "PATIENCE_SECONDS", 0)
    done(None, None)
    with pytest.raises(UserError, match="detector: its last batch is written in part"):
        cut.settle("detector", "detector", None, TOPICS, Log())
