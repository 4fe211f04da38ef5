import copy
from datetime import timedelta

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from infra.contract.schemas import SCHEMAS
from infra.contract.topics import Lateness, Topic, format_duration, load_topics, parse_duration
from infra.errors import UserError

MAP = {
    "defaults": {
        "partitions": 4,
        "retention": "7d",
        "cleanup": "delete",
        "timestamp": "CreateTime",
        "archive": "raw",
        "key": "any",
        "about": "a test",
    },
    "telemetry": {"lateness": "20s", "future": "10s", "timestamp": "LogAppendTime", "written_by": ["collectors"]},
    "topics": {
        "telemetry.a": {"group": "telemetry", "format": "lines_json"},
        "events": {"shards": "machine"},
        "statistics": {"shards": "machine", "retention": "12h"},
        "inventory": {"cleanup": "compact", "written_by": ["kappa inventory"], "archive": "none"},
    },
}


@pytest.fixture
def load(tmp_path):
    """Load the map above with one topic's fields changed."""

    def load(topic=None, **fields):
        sections = copy.deepcopy(MAP)
        if topic:
            sections["topics"].setdefault(topic, {}).update(fields)
        path = tmp_path / "topics.yaml"
        path.write_text(yaml.safe_dump(sections, sort_keys=False))
        return load_topics(path)

    return load


def test_a_topic_takes_its_own_value_then_the_groups_then_the_default(load):
    topics = load()
    assert topics["telemetry.a"].timestamp == "LogAppendTime"
    assert topics["telemetry.a"].lateness == Lateness(max=timedelta(seconds=20))
    assert topics["telemetry.a"].retention == timedelta(days=7)
    assert topics["statistics"].config == {
        "cleanup.policy": "delete",
        "message.timestamp.type": "CreateTime",
        "max.message.bytes": "10485760",
        "retention.ms": "43200000",
    }
    assert topics["inventory"].config == {
        "cleanup.policy": "compact",
        "message.timestamp.type": "CreateTime",
        "max.message.bytes": "10485760",
        "min.compaction.lag.ms": "604800000",
    }


def test_selections(load):
    topics = load()
    assert [topic.name for topic in topics.telemetry] == ["telemetry.a"]
    assert [topic.name for topic in topics.archived] == ["telemetry.a", "events", "statistics"]


def test_a_generation_has_its_own_outputs_and_shares_the_inputs(load):
    live = load()
    topics = live.in_generation("v2", {"events", "statistics"}, live)
    assert [topic.name for topic in topics] == ["telemetry.a", "events.v2", "statistics.v2", "inventory"]
    assert [topic.name for topic in topics.derived] == ["events.v2", "statistics.v2"]


def test_a_part_of_the_chain_reads_the_rest_of_its_base(load):
    live = load()
    first = live.in_generation("v2", {"events", "statistics"}, live)
    second = live.in_generation("v3", {"statistics"}, first)
    assert [topic.name for topic in second] == ["telemetry.a", "events.v2", "statistics.v3", "inventory"]
    assert second.owns("statistics") and not second.owns("events")


def test_a_rescaled_generation_has_more_of_what_it_shards_and_so_has_one_that_reads_from_it(load):
    live = load()
    wide = live.in_generation("wide", {"events", "statistics"}, live).rescaled(8)
    assert {topic.name: topic.partitions for topic in wide} == {
        "telemetry.a": 4,
        "events.wide": 8,
        "statistics.wide": 8,
        "inventory": live["inventory"].partitions,
    }
    later = live.in_generation("v3", {"statistics"}, wide)
    assert (later["statistics"].name, later["statistics"].partitions) == ("statistics.v3", 8)
    assert later.rescaled(16)["events"].partitions == 8  # which is another generation's


@pytest.mark.parametrize(
    ("topic", "fields", "message"),
    [
        ("events", {"partitions": 0}, "events: partitions=0: .*greater than or equal to 1"),
        ("events", {"retention": "a week"}, "events: retention='a week': write a whole number and a unit"),
        ("events", {"cleanup": "none"}, "events: cleanup='none': .*'delete' or 'compact'"),
        ("events", {"partition": 3}, "events: partition=3: Extra inputs"),
        ("events", {"partitions": 8}, r"statistics.partitions=4: must equal events's 8, both are sharded by machine"),
        ("events", {"group": "nope"}, "events.group='nope': no such group; there are telemetry"),
        ("events", {"archive": "parsed"}, "events: archive: parsed needs a schema"),
        ("Bad Name", {"written_by": ["x"]}, "Bad Name: name='Bad Name'"),
        ("new", {"written_by": ["x"], "format": "f"}, "new: a topic with a format needs lateness and future"),
    ],
)
def test_a_wrong_value_names_topic_and_field(load, topic, fields, message):
    with pytest.raises(UserError, match=message) as caught:
        load(topic, **fields)
    assert "\n" not in str(caught.value)


def test_an_unreadable_file_is_said_in_one_line(tmp_path):
    (tmp_path / "bad.yaml").write_text("topics: {a: [")
    for path in (tmp_path / "absent.yaml", tmp_path / "bad.yaml"):
        with pytest.raises(UserError, match=f"{path.name}: can't be read") as caught:
            load_topics(path)
        assert "\n" not in str(caught.value)


def test_an_unknown_topic_is_named_with_those_there_are(load):
    with pytest.raises(UserError, match=r"'nope' is not in the map; it has telemetry.a, events"):
        load()["nope"]


@given(st.integers(min_value=1, max_value=10**12))
def test_a_duration_survives_its_text(milliseconds):
    duration = timedelta(milliseconds=milliseconds)
    assert parse_duration(format_duration(duration)) == duration


def test_the_projects_map_names_real_schemas():
    topics = load_topics()
    assert {topic.schema_name for topic in topics} - {None} == set(SCHEMAS)
    assert {"events", "statistics", "novelties"} <= set(topics.topics)
    assert all(topic.timestamp == "LogAppendTime" for topic in topics.telemetry)


def test_quotas_of_users(tmp_path):
    path = tmp_path / "topics.yaml"
    path.write_text("topics: {}\nquotas: {acme: {produce_bytes: 1000, request_percent: 50}}\n")
    assert load_topics(path).quotas["acme"].in_kafkas_names() == {
        "producer_byte_rate": 1000.0,
        "request_percentage": 50.0,
    }
    path.write_text("topics: {}\nquotas: {acme: {produce_bytes: 0}}\n")
    with pytest.raises(UserError, match=r"quotas.acme: produce_bytes=0: Input should be greater than or equal to 1"):
        load_topics(path)


def test_an_identity_needs_one_writer():
    topic = load_topics()["telemetry.lines"].model_dump(by_alias=True)
    with pytest.raises(ValueError, match="only a topic with a format and one writer"):
        Topic.model_validate({**topic, "identity": {"machines": "prefix"}})
    one = Topic.model_validate({**topic, "written_by": ("acme",), "identity": {"machines": "prefix"}})
    assert one.identity.machines == "prefix"
