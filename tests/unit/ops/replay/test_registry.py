import orjson
import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import CHAIN, Generation, Promotion, Registry, write
from ops.replay.views import indices, locations

WHOLE = Generation(name="v2", base="live", jobs=CHAIN)
DETECTOR = Generation(name="v3", base="v2", jobs=("detector", "incidents", "archive", "indexer"))


@pytest.fixture
def registry():
    return Registry({"v2": WHOLE, "v3": DETECTOR, "v4": WHOLE.model_copy(update={"name": "v4", "state": "dropped"})})


def test_a_generation_reads_from_its_base_what_it_does_not_compute(registry):
    topics = registry.topics("v3", load_topics())
    names = {
        key: topics[key].name for key in ("telemetry.lines", "events", "statistics", "novelties", "events.rejected")
    }
    assert names == {
        "telemetry.lines": "telemetry.lines",
        "events": "events.v2",
        "statistics": "statistics.v2",
        "novelties": "novelties.v3",
        "events.rejected": "events.rejected.v3",
    }
    assert [topic.name for topic in topics.archived] == ["events.rejected.v3", "novelties.v3", "incidents.v3"]


def test_a_whole_chain_archives_the_inputs_too(registry):
    archived = {topic.name for topic in registry.topics("v2", load_topics()).archived}
    assert {"telemetry.lines", "inventory", "events.v2"} <= archived


def test_a_generation_that_nobody_planned_runs_the_whole_chain(registry):
    assert registry.topics("other", load_topics()) == JOBS.topics_in(load_topics(), "other")
    assert registry.topics("live", load_topics()) == load_topics()


def test_a_rescaled_generation_has_its_partitions_and_its_jobs_begin_where_the_plan_says(registry):
    starts = {"rules": {("events.wide", 0): 7}}
    wide = WHOLE.model_copy(update={"name": "wide", "partitions": 8, "starts": starts})
    wide = Generation.model_validate_json(wide.model_dump_json())
    registry.generations["wide"] = wide
    topics = registry.topics("wide", load_topics())
    assert {topic.partitions for topic in topics.derived if topic.shards} == {8}
    assert topics["detector.control"].partitions == load_topics()["detector.control"].partitions
    assert wide.replay_of("rules").start == {("events.wide", 0): 7}
    assert wide.replay_of("statistics").start == {}
    assert wide.replay_of(wide.jobs[0]) is wide.replay


def test_lineage_ends_where_a_generation_needs_no_other(registry):
    assert registry.lineage("v3") == ["v3", "v2"]
    assert registry.lineage("v2") == ["v2"]


def test_readers_of_a_part_of_the_chain_see_the_rest_of_the_base(registry):
    assert indices("v3", registry, load_topics()) == {
        "statistics": ["kappa-statistics-v2"],
        "novelties": ["kappa-novelties-v3"],
        "incidents": ["kappa-incidents-v3"],
        "rejected": ["kappa-rejected-v3", "kappa-rejected-v2"],
    }
    found = {table: generation for table, generation, _ in locations("v3", registry, Settings())}
    assert found == {"events.rejected": "v2", "statistics": "v2", "novelties": "v3", "incidents": "v3"}


def test_what_is_gone_or_not_there_is_named(registry):
    for name in ("v4", "v9"):
        with pytest.raises(UserError, match=f"generation='{name}': there is none; there are live, v2, v3"):
            registry.find(name)
    with pytest.raises(UserError, match="was dropped"):
        registry.generations["v4"].check_runs("detector")
    with pytest.raises(UserError, match="statistics is v2's"):
        DETECTOR.check_runs("statistics")


def record(**changed):
    return orjson.dumps({"name": "v2", "base": "live", "jobs": list(CHAIN)} | changed)


HOSTILE = {
    "no JSON": b"{",
    "no UTF-8": b'{"name": "\xff"}',
    "a tombstone": b"",
    "a list": b"[]",
    "null": b"null",
    "nothing in it": b"{}",
    "another name": record(name="v3"),
    "a name that leads out": record(name="../../victim"),
    "a base that leads out": record(base="../live"),
    "an unknown job": record(jobs=["enrichment", "shell"]),
    "no job": record(jobs=[]),
    "a setting that nothing has": record(settings={"detector.nothing": "1"}),
    "a setting of the runtime": record(settings={"runtime.spark_conf": "{}"}),
    "a setting of a job that it doesn't run": record(jobs=["detector"], settings={"statistics.windows": "x"}),
    "a setting of a job without settings": record(settings={"enrichment.x": "1"}),
    "an attribute of a settings class": record(settings={"detector.model_config": "{}"}),
    "a setting that is no text": record(settings={"detector.alarms_per_day": {"a": 1}}),
    "a ref that is an option": record(ref="--upload-pack=touch x"),
    "a ref with a space": record(ref="a b"),
    "restored topics of others": record(replay={"restored": {"events": "statistics"}}),
    "restored topics of another generation": record(replay={"restored": {"events.v3": "events"}}),
    "offsets of another shape": record(replay={"start": [1, 2]}),
    "a rate that is no number": record(replay={"max_rate": "fast"}),
    "an unknown state": record(state="gone"),
    "itself as base": record(base="v2"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_record_that_is_no_plan_stops_only_its_own_generation(case):
    other = orjson.dumps({"name": "v5", "base": "live", "jobs": ["detector"]})
    found = Registry.of([(b"v5", other), (b"v2", HOSTILE[case])])
    assert found.names == ["live", "v5"]
    assert found.topics("v5", load_topics())["novelties"].name == "novelties.v5"
    for use in (found.find, found.planned, found.jobs, found.lineage, lambda name: found.topics(name, load_topics())):
        with pytest.raises(UserError, match=r"generation='?v2'?: ") as raised:
            use("v2")
        assert "\n" not in str(raised.value) and len(str(raised.value)) < 600


@pytest.mark.parametrize("case", [case for case in HOSTILE if case != "itself as base"])
def test_a_record_that_can_not_be_used_leaves_the_plan_before_it(case):
    found = Registry.of([(b"v2", record(until="latest")), (b"v2", HOSTILE[case])])
    assert found.find("v2").until == "latest"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"@promoted", b"{"),
        (b"@promoted", b'{"generation": "../x"}'),
        (b"@promoted", b'{"generation": "v2", "previous": "a b"}'),
        (b"\xff\xfe", b"x"),
        (b"", record()),
        (b"live", record(name="live")),
        (b"../x", record(name="../x")),
    ],
)
def test_what_is_no_generation_changes_nothing(key, value):
    found = Registry.of([(b"v2", record()), (b"@promoted", b'{"generation": "v2"}'), (key, value)])
    assert (found.names, found.promotion.generation, found.refused) == (["live", "v2"], "v2", {})


def test_generations_that_read_from_each_other_are_refused():
    found = Registry.of([(b"v2", record(base="v3")), (b"v3", record(name="v3", base="v2")), (b"v4", record(name="v4"))])
    assert found.names == ["live", "v4"] and sorted(found.refused) == ["v2", "v3"]


def test_a_later_record_of_the_schema_mends_it():
    found = Registry.of([(b"v2", b"{"), (b"v2", record())])
    assert found.names == ["live", "v2"] and not found.refused


def test_a_generation_can_not_take_the_name_of_a_topic(registry):
    with pytest.raises(UserError, match=r"its topic 'events\.late' is one of the map"):
        registry.topics("late", load_topics())


def test_a_record_says_who_wrote_it(monkeypatch):
    written = []
    monkeypatch.setattr("ops.replay.registry.author", lambda: "ada as kappa-administrator")
    monkeypatch.setattr("ops.replay.registry.write_now", lambda *record: written.append(record[-1]))
    planned = Generation(name="v2", base="live", jobs=("detector",))
    write("here:1", planned)
    write("here:1", planned.model_copy(update={"state": "caught up", "by": "eve"}))
    write("here:1", planned.model_copy(update={"state": "dropped", "by": "eve"}))
    write("here:1", Promotion(generation="v2"))
    assert [orjson.loads(value)["by"] for value in written] == [
        "ada as kappa-administrator",
        "eve",
        "ada as kappa-administrator",
        "ada as kappa-administrator",
    ]
