"""What is noted of the looks before an upgrade, and that it is read as it was written."""

from contextlib import nullcontext

import pytest
from confluent_kafka import TopicPartition

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.upgrade import mark
from ops.upgrade.looks import Look, Stand
from ops.upgrade.mark import Before, Mark, before_of

NOTED = Mark(
    mode="savepoint",
    taken="2026-11-26T10:00:00Z",
    savepoint="upgrade.live.20261126T100000Z",
    queries={"detector": Before(owner="host process 7 0f", lag=12), "indexer": Before(lag=3)},
)


@pytest.fixture
def groups(monkeypatch):
    """The metadata of each group's offset on the first partition of the progress topic."""
    held = {}

    def commit(_progress, group, offsets):
        ((place),) = offsets
        assert (place.topic, place.partition) == ("sink.progress", 0)
        held[group] = place.metadata

    def fetch(group, wanted):
        return [TopicPartition(one.topic, one.partition, 0, metadata=held.get(group, "")) for one in wanted]

    monkeypatch.setattr(mark, "commit", commit)
    monkeypatch.setattr(mark, "open_consumer", lambda _connection, group: nullcontext(group))
    monkeypatch.setattr(mark, "fetch_committed", fetch)
    return held


def test_it_is_read_as_it_was_written(groups):
    mark.write(NOTED, Settings())
    assert groups.keys() == {"kappa.live.detector.upgrade", "kappa.live.indexer.upgrade", "kappa.live.upgrade"}
    assert mark.read(Settings()) == NOTED


def test_a_later_one_takes_its_place(groups):
    mark.write(NOTED, Settings())
    later = NOTED.model_copy(update={"taken": "later", "savepoint": None, "queries": {"detector": Before(owner="x")}})
    mark.write(later, Settings())
    assert mark.read(Settings()) == later


def test_each_generation_has_its_own(groups):
    mark.write(NOTED, Settings(generation="v2"))
    assert "kappa.v2.detector.upgrade" in groups
    with pytest.raises(UserError, match=r"generation=live: no upgrade has begun; `kappa upgrade begin`"):
        mark.read(Settings())


def test_one_whose_writing_was_cut_is_none(groups):
    mark.write(NOTED, Settings())
    cut = NOTED.model_copy(update={"taken": "later"})
    former = groups["kappa.live.upgrade"]
    mark.write(cut, Settings())
    groups["kappa.live.upgrade"] = former
    with pytest.raises(UserError, match="no upgrade has begun"):
        mark.read(Settings())


def test_it_fits_into_an_offsets_metadata(groups):
    """Which a broker bounds by 4096 bytes."""
    names = [f"archive.a-table-with-a-long-name-{number}" for number in range(50)]
    owner = f"{'h' * 253} process 4194304 0123abcd"
    mark.write(
        NOTED.model_copy(update={"queries": {name: Before(owner=owner, lag=10**9) for name in names}}), Settings()
    )
    assert max(map(len, groups.values())) < 4096


def test_the_largest_lag_and_the_last_owner_count():
    looks = [
        Look(0, {"detector": Stand("first", 1, 9, 100), "archive.alerts": Stand("", 0, 0, 0, has_committed=False)}),
        Look(2, {"detector": Stand("second", 2, 4, 110), "archive.alerts": Stand("", 0, 0, 0, has_committed=False)}),
    ]
    assert before_of(looks) == {"detector": Before(owner="second", lag=9)}


def test_a_job_without_an_owner_is_noted_if_it_has_ever_committed():
    looks = [Look(0, {"indexer": Stand("", 0, 5, 100), "notifier": Stand("", 0, 0, 0, has_committed=False)})]
    assert before_of(looks) == {"indexer": Before(lag=5)}
