"""The map against the real broker."""

import uuid

from confluent_kafka import Producer

from connectors.kafka.admin import TopicState, apply, compare, connect, set_config, widen
from infra.contract.topics import TopicMap, load_topics
from tests.topics import with_changes


def own(**changes):
    """Two of the map's topics under names of this test's own."""
    declared = with_changes(load_topics(), **changes)
    prefix = uuid.uuid4().hex
    return TopicMap(
        {key: declared[key].model_copy(update={"name": f"{prefix}.{key}"}) for key in ("telemetry.syslog", "inventory")}
    )


def test_apply_creates_what_is_missing_and_then_has_nothing_to_do(servers):
    admin = connect(servers.bootstrap)
    topics = own()
    names = [topic.name for topic in topics]
    assert compare(admin, topics) == [TopicState(name, "missing") for name in names]
    assert apply(admin, topics) == [TopicState(name, "created") for name in names]
    assert apply(admin, topics) == [TopicState(name, "same") for name in names]


def test_a_difference_is_shown_and_not_changed(servers):
    admin = connect(servers.bootstrap)
    topics = own()
    apply(admin, topics)
    changed = with_changes(topics, partitions=7, timestamp="CreateTime")
    expected = [
        TopicState(
            topics["telemetry.syslog"].name,
            "differs",
            {"partitions": ("7", "4"), "message.timestamp.type": ("CreateTime", "LogAppendTime")},
        ),
        TopicState(topics["inventory"].name, "differs", {"message.timestamp.type": ("CreateTime", "LogAppendTime")}),
    ]
    assert apply(admin, changed) == expected
    assert compare(admin, changed) == expected
    assert {state.state for state in compare(admin, topics)} == {"same"}


def test_what_loses_nothing_is_applied_and_a_shorter_retention_is_left_to_a_person(servers):
    admin = connect(servers.bootstrap)
    topics = own(retention="7d", max_message_bytes=2_000_000)
    apply(admin, topics)
    name, days = topics["telemetry.syslog"].name, 86_400_000
    longer = with_changes(topics, retention="9d", max_message_bytes=3_000_000)
    states = {state.name: state for state in widen(admin, apply(admin, with_changes(longer, partitions=7)))}
    assert states[name] == TopicState(name, "differs", {"partitions": ("7", "4")})
    assert states[topics["inventory"].name] == TopicState(topics["inventory"].name, "changed")
    assert {state.state for state in compare(admin, longer)} == {"same"}

    shorter = {"retention.ms": (str(7 * days), str(9 * days))}
    back = with_changes(topics, max_message_bytes=3_000_000)
    assert widen(admin, apply(admin, back))[0] == TopicState(name, "differs", shorter)
    set_config(admin, {name: {"retention.ms": "-1"}})
    assert widen(admin, apply(admin, longer))[0].differences["retention.ms"] == (str(9 * days), "-1")


def test_a_misspelt_topic_is_not_made_by_writing_to_it(servers):
    name = uuid.uuid4().hex
    errors = []
    producer = Producer({"bootstrap.servers": servers.bootstrap, "message.timeout.ms": 2000})
    producer.produce(name, b"x", on_delivery=lambda error, _: errors.append(error))
    producer.flush(20)
    assert errors[0] is not None
    assert name not in connect(servers.bootstrap).list_topics(timeout=20).topics
