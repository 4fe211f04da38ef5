from types import SimpleNamespace

import pytest

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.replay.registry import Registry
from ops.savepoints.saved import ChainSavepoint
from ops.site import failover as module
from ops.site.failover import Failover, failover
from ops.site.readers import Reader

JOBS = ("enrichment", "statistics", "detector", "incidents", "archive", "indexer")
SAVED = ChainSavepoint(
    name="move", generation="live", taken="2026-01-01T00:00:00Z", jobs=JOBS, queries={}, groups={}, ends={}, files={}
)


@pytest.fixture
def steps(monkeypatch):
    """What is done, in order, with what is asked of two clusters; `busy` has the groups that still read."""
    done, busy = list[str](), set[str]()

    class Kafka:
        def __init__(self, bootstrap):
            self.bootstrap = bootstrap

        def identities(self, names):
            return {name: f"{name} on {self.bootstrap}" for name in names}

        def ends(self, names):
            assert "sink.progress" not in names
            return {("events", 0): 70}

    class Drain:
        def __init__(self, source, target, topics, beside):
            self.what = f"drained {source.bootstrap} to {target.bootstrap} beside {' '.join(beside)}"

        def wait(self, patience, tell):
            done.append(self.what)

    def check_idle(found, source, target):
        if at_work := busy & {reader.group for reader in found}:
            raise UserError(f"group {min(at_work)} still reads")

    def readers_of(source, names, others):
        assert others == {"kappa.live.rules", "kappa.live.notifier"}
        return [Reader("billing", {}), Reader("kappa.live.notifier", {})]

    mirrors = {"mm2-offsets.dc1.internal": "dc1", "mm2-offsets.west.internal": "west"}
    monkeypatch.setattr(module, "reach", lambda bootstrap: None)
    monkeypatch.setattr(module, "Log", Kafka)
    monkeypatch.setattr(module, "Drain", Drain)
    monkeypatch.setattr(Registry, "read", classmethod(lambda *_: Registry()))
    monkeypatch.setattr(module.readers, "readers_of", readers_of)
    monkeypatch.setattr(module.readers, "check_idle", check_idle)
    monkeypatch.setattr(module.readers, "places_at", lambda target, reader, source: {("novelties", 0): 7})
    monkeypatch.setattr(module.readers, "go_on_at", lambda target, group, places: done.append(f"reader {group}"))
    monkeypatch.setattr(module.chain, "restore", lambda saved, *_: done.append(f"restored {saved.name}"))
    monkeypatch.setattr(module.mirror_positions, "sites_of", lambda kafka: mirrors)
    monkeypatch.setattr(
        module.mirror_positions, "carry_over", lambda _, __, topics: done.append(f"mirrors {[*topics]}")
    )
    monkeypatch.setattr(
        module.mirror_positions,
        "begin_at",
        lambda source, target, site, ends: done.append(f"{site} from {source.bootstrap} at {[*ends.values()]}"),
    )
    return SimpleNamespace(done=done, busy=busy)


def call(tmp_path, saved=SAVED, source="east:1", **own):
    settings = Settings(home=tmp_path, kafka_bootstrap="west:1")
    return failover(saved, source, "west", settings, patience=1, tell=lambda left: None, **own)


def test_nothing_is_put_in_place_before_everything_has_come(steps, tmp_path):
    assert call(tmp_path) == Failover(JOBS, ("billing", "kappa.live.notifier"), ("dc1",))
    assert steps.done == [
        "drained east:1 to west:1 beside mm2-offsets.dc1.internal",
        "restored move",
        "reader billing",
        "reader kappa.live.notifier",
        "mirrors ['mm2-offsets.dc1.internal']",
        "west from west:1 at [70]",
    ]


def test_a_reader_that_still_reads_is_refused_before_anything_is_done_unless_it_is_left_behind(steps, tmp_path):
    steps.busy.add("billing")
    with pytest.raises(UserError, match="group billing still reads"):
        call(tmp_path)
    assert not steps.done
    assert call(tmp_path, without=["billing"]).readers == ("kappa.live.notifier",)


def test_a_centre_that_does_not_answer_is_named_with_the_other_way(steps, tmp_path, monkeypatch):
    def reach(bootstrap):
        raise UserError("no Kafka broker answers")

    monkeypatch.setattr(module, "reach", reach)
    with pytest.raises(
        UserError, match=r"--from east:1: no Kafka broker answers\. Where a centre was lost, start another"
    ):
        call(tmp_path)


def test_the_former_cluster_must_be_another_one_and_that_of_the_savepoint(steps, tmp_path):
    with pytest.raises(UserError, match=r"--from west:1: is this cluster itself"):
        call(tmp_path, source="west:1")
    with pytest.raises(UserError, match=r"savepoint 'move': was taken on another cluster than east:1"):
        call(tmp_path, SAVED.model_copy(update={"identities": {"events": "events on south:1"}}))
    assert not steps.done
    assert call(tmp_path, SAVED.model_copy(update={"identities": {"events": "events on east:1"}})).jobs == JOBS


def test_a_reader_whose_place_is_not_found_is_refused_before_anything_is_done(steps, tmp_path, monkeypatch):
    def places_at(target, reader, source):
        raise UserError("not found")

    monkeypatch.setattr(module.readers, "places_at", places_at)
    with pytest.raises(UserError, match="not found"):
        call(tmp_path)
    assert steps.done == ["drained east:1 to west:1 beside mm2-offsets.dc1.internal"]
