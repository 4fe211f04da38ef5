"""Which checkpoints the former image can go on from, and when the savepoint is put back in their place."""

from contextlib import nullcontext

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.packed_state import VALUE
from jobs.runtime.settings import Settings
from jobs.statistics.state import LAYOUT
from jobs.table import JOBS
from ops.replay.registry import Registry
from ops.savepoints.saved import ChainSavepoint, Savepoint
from ops.savepoints.store import Store
from ops.upgrade import back as module
from ops.upgrade.back import GOES_ON, Checkpoints, back
from ops.upgrade.mark import Before, Mark

MARK = Mark(mode="savepoint", taken="now", savepoint="before", queries={"statistics": Before(owner="old")})
PLAN = b'v2\n{"batchWatermarkMs":0}\nevents:{"events":{"0":5}}'


def of_query(job):
    return Savepoint(
        name="before", job=job, generation="live", batch=1, planned=False, run="r", offsets={}, sources=(), markers=(),
        driver=2, shuffle_partitions=2, settings={}, layout={}, shards=1,
    )  # fmt: skip


SAVED = ChainSavepoint(
    name="before", generation="live", taken="now", jobs=("enrichment", "statistics"), groups={}, ends={}, files={},
    queries={"enrichment": of_query("enrichment"), "statistics": of_query("statistics")},
)  # fmt: skip


@pytest.fixture
def settings(tmp_path):
    settings = Settings(home=tmp_path)
    for query in SAVED.queries:
        Store.of(settings.checkpoint_of(query)).write("offsets/1", PLAN)
    return settings


@pytest.fixture
def state(monkeypatch):
    """The packed state of the statistics' only shard."""
    parts = (
        JOBS["statistics"].implementation().opener(JOBS["statistics"].settings_class()(), load_topics())(None).dump()
    )
    monkeypatch.setattr(module, "shards", lambda _spark, _checkpoint: {0: parts})
    return parts


@pytest.fixture
def restored(monkeypatch):
    """The savepoints that were put back."""
    names = []
    monkeypatch.setattr(module, "session", lambda *_: nullcontext())
    monkeypatch.setattr(Registry, "read", classmethod(lambda *_: Registry()))
    monkeypatch.setattr(module.savepoints, "read", lambda *_: SAVED)
    monkeypatch.setattr(module.chain, "restore", lambda saved, *_: names.append(saved.name))
    return names


def refusal(settings):
    return Checkpoints(settings, Registry(), load_topics(), None).refusal(SAVED)


def test_checkpoints_of_this_version_are_gone_on_from(settings, state):
    assert refusal(settings) is None


def test_a_state_of_another_layout_is_refused_with_what_the_job_would_say(settings, state):
    state[VALUE + "layout"] = b"%d" % (LAYOUT + 1)
    assert refusal(settings).startswith(f"statistics: this state has the layout {LAYOUT + 1}, this version {LAYOUT}:")


def test_a_state_that_spark_can_not_read_is_refused(settings, state, monkeypatch):
    def shards(*_):
        raise RuntimeError("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] the key schema differs\nat org.apache.spark")

    monkeypatch.setattr(module, "shards", shards)
    assert refusal(settings) == "statistics: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] the key schema differs"


def test_a_checkpoint_that_is_gone_is_refused(settings, state):
    Store.of(settings.checkpoint_of("enrichment")).remove()
    assert refusal(settings).startswith("enrichment: ")


def test_the_former_image_goes_on_where_it_can(settings, state, restored):
    assert back(MARK, settings) == GOES_ON and restored == []


def test_the_savepoint_is_put_back_where_it_can_not(settings, state, restored):
    state[VALUE + "layout"] = b"99"
    line = back(MARK, settings)
    assert line.startswith("savepoint before is back in place (statistics: this state has the layout 99")
    assert line.endswith("start the former image") and restored == ["before"]


def test_without_a_savepoint_nothing_is_read(settings):
    without = MARK.model_copy(update={"mode": "checkpoint", "savepoint": None})
    assert back(without, settings.model_copy(update={"storage_shared": False})) == GOES_ON


def test_storage_that_is_out_of_reach_is_named(settings):
    with pytest.raises(UserError, match="storage_shared=False"):
        back(MARK, settings.model_copy(update={"storage_shared": False}))


def test_a_savepoint_of_one_job_is_no_way_back(settings, restored, monkeypatch):
    monkeypatch.setattr(module.savepoints, "read", lambda *_: of_query("statistics"))
    with pytest.raises(UserError, match="'before': is of one job"):
        back(MARK, settings)
