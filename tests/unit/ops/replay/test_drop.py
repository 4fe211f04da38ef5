"""`kappa replay drop` leaves nothing of a generation, wherever it is kept and however far it came."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.replay import promotion, restore
from ops.replay.registry import Generation, Registry


@pytest.fixture
def broker(monkeypatch):
    """The topics of the broker; `written` are the records of `generations`."""
    topics, written = {topic.name for topic in load_topics()}, []
    client = SimpleNamespace(list_consumer_groups=lambda: SimpleNamespace(result=lambda: SimpleNamespace(valid=[])))
    monkeypatch.setattr(promotion.admin, "connect", lambda _: client)
    monkeypatch.setattr(promotion.admin, "delete", lambda _, names: topics.difference_update(names))
    monkeypatch.setattr(promotion, "elasticsearch", lambda _: None)
    monkeypatch.setattr(promotion.views, "concrete", lambda *_: [])
    monkeypatch.setattr(promotion, "write", lambda _, record: written.append(record))
    return SimpleNamespace(topics=topics, written=written)


def of(**fields):
    return Registry({"v2": Generation(name="v2", base="live", jobs=("enrichment",), **fields)})


def occupied(monkeypatch, times):
    """A consumer group of v2 that somebody is in, as often as it is asked to go."""
    present, errors = ["kappa.v2.indexer"], [KafkaException(KafkaError(KafkaError.NON_EMPTY_GROUP))] * times

    def deleted():
        if errors:
            raise errors.pop()
        present.clear()

    groups = SimpleNamespace(result=lambda: SimpleNamespace(valid=[SimpleNamespace(group_id=name) for name in present]))
    client = SimpleNamespace(
        list_consumer_groups=lambda: groups,
        delete_consumer_groups=lambda names: {name: SimpleNamespace(result=deleted) for name in names},
    )
    monkeypatch.setattr(promotion.admin, "connect", lambda _: client)
    monkeypatch.setattr(promotion.time, "sleep", lambda _: None)
    return present


def test_a_job_that_has_just_been_ended_is_waited_for(broker, tmp_path, monkeypatch):
    present = occupied(monkeypatch, 3)
    promotion.drop("v2", of(), Settings(home=tmp_path))
    assert not present and broker.written[-1].state == "dropped"


def test_a_job_that_goes_on_is_not(broker, tmp_path, monkeypatch):
    occupied(monkeypatch, 1)
    monkeypatch.setattr(promotion, "LEAVING_SECONDS", 0.0)
    with pytest.raises(UserError, match=r"kappa\.v2\.indexer: .*; end the jobs of v2 first"):
        promotion.drop("v2", of(), Settings(home=tmp_path, drain_seconds=1e-9))


def own_topics(registry):
    topics = registry.topics("v2", load_topics())
    return {topic.name for topic in topics.derived} | set(restore.names(registry.find("v2"), topics))


def test_topics_of_a_restore_that_never_ended_go_too(broker, tmp_path):
    before, registry = set(broker.topics), of(source="delta", state="restoring")
    broker.topics |= own_topics(registry)
    assert "telemetry.lines.v2" in broker.topics
    promotion.drop("v2", registry, Settings(home=tmp_path))
    assert broker.topics == before
    assert [(record.name, record.state) for record in broker.written] == [("v2", "dropped")]


def test_of_what_a_generation_of_kafka_reads_nothing_goes(broker, tmp_path):
    broker.topics.add("telemetry.lines.v2")  # is somebody else's: this one restored nothing
    promotion.drop("v2", of(), Settings(home=tmp_path))
    assert "telemetry.lines.v2" in broker.topics


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_checkpoints_and_tables_go_from_folders_and_urls(broker, tmp_path, scheme):
    kept, gone = ["checkpoints/live/detector", "delta/live/log"], ["checkpoints/v2/detector", "delta/v2/novelties"]
    for name in (*kept, *gone):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "0").touch()
    places = {part: f"{scheme}{tmp_path}/{part}" for part in ("checkpoints", "delta")}
    promotion.drop("v2", of(), Settings(home=tmp_path, **places))
    assert sorted(str(file.relative_to(tmp_path).parent) for file in tmp_path.rglob("0")) == kept
    promotion.drop("v2", of(), Settings(home=tmp_path, **places))  # once more: an earlier attempt may have been killed
