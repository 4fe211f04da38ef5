"""What is done about sources that a checkpoint and its query don't have in common."""

import pytest

from infra.errors import UserError
from jobs.runtime.source_changes import settle_sources

ENDS = {"syslog_json": {("syslog", 0): 7}, "lines_json": {("lines", 0): 20, ("lines", 1): 5}}
SOURCES = {"syslog_json": ["syslog"], "lines_json": ["lines"]}


class Checkpoint:
    """One whose last batch is `planned` and ends at `ends`; notes where sources begin again."""

    def __init__(self, ends=ENDS, planned=12, read=SOURCES):
        self.last, self.planned, self.read = ends, lambda: planned, read
        self.begun = {}

    def ends(self, batch_id):
        assert batch_id == self.planned()
        return self.last

    def has_read(self, source):
        return source in self.read

    def begin_again(self, source, offsets):
        self.begun[source] = offsets


class Kafka:
    """A log of which `lines` has lost its first three records, and a job that has read of its partition 0."""

    def starts(self, topics):
        assert topics == ["lines"]
        return {("lines", 0): 3, ("lines", 1): 3}

    def committed(self, group, places):
        assert group == "kappa.live.enrichment"
        return {place: 20 if place == ("lines", 0) else 0 for place in places}


def settle(checkpoint, sources=SOURCES, committed=13):
    settle_sources("kappa.live.enrichment", sources, checkpoint, committed, Kafka())
    return checkpoint.begun


WITHOUT_LINES = {"syslog_json": {("syslog", 0): 7}}


def test_a_source_that_is_back_goes_on_where_the_group_has_read_to():
    assert settle(Checkpoint(WITHOUT_LINES)) == {"lines_json": {("lines", 0): 20, ("lines", 1): 3}}


def test_one_that_is_new_is_left_to_spark():
    assert settle(Checkpoint(WITHOUT_LINES, read={"syslog_json"})) == {}


def test_the_same_sources_are_left_alone():
    assert settle(Checkpoint(), committed=12) == {}


def test_a_checkpoint_without_batches_is_left_alone():
    assert settle(Checkpoint(planned=-1), committed=0) == {}


def test_a_source_may_go_between_batches():
    assert settle(Checkpoint(), {"syslog_json": ["syslog"]}) == {}


def test_a_source_may_not_go_within_a_batch():
    with pytest.raises(UserError, match="enrichment: batch 12 was begun with lines_json, which"):
        settle(Checkpoint(), {"syslog_json": ["syslog"]}, committed=12)
