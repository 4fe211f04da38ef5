import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import CHAIN, Generation, Registry
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
