import re

import pytest
import yaml

from infra.contract.topics import load_topics
from infra.errors import UserError
from ops.site.mirror import Mirror, everything, findings, mirrored, properties, strimzi

MIRROR = Mirror("dc1", "a:9092,b:9092", "c:9092", tasks=2)
TOPICS = load_topics()


def parsed() -> dict[str, str]:
    """As Java reads the file."""
    lines = (line.split(" = ", 1) for line in properties(MIRROR, mirrored(TOPICS), 8099).splitlines())
    return {name: value.replace("\\\\", "\\") for name, value in lines}


def test_what_machines_and_people_say_goes_to_the_centre_and_nothing_that_jobs_write():
    names = {topic.name for topic in mirrored(TOPICS)}
    assert {"telemetry.otlp.metrics", "telemetry.lines", "detector.control", "inventory"} <= names
    assert not names & {"events", "events.rejected", "statistics", "novelties", "generations", "sink.progress"}


def test_what_the_jobs_of_an_edge_site_have_found_goes_to_the_centre_and_no_events_or_dead_letters():
    assert {topic.name for topic in findings(TOPICS)} == {"statistics", "novelties", "incidents", "alerts"}


def test_a_chain_that_moves_takes_along_all_but_the_markers_of_its_sinks():
    assert {topic.name for topic in TOPICS} - {topic.name for topic in everything(TOPICS)} == {"sink.progress"}


def test_the_file_of_properties():
    found = parsed()
    assert found["clusters"] == "dc1, centre"
    assert found["dc1.bootstrap.servers"] == "a:9092,b:9092" and found["centre.bootstrap.servers"] == "c:9092"
    assert found["dc1->centre.enabled"] == "true" and "centre->dc1.enabled" not in found
    assert found["dc1->centre.replication.policy.class"].endswith(".IdentityReplicationPolicy")
    assert found["centre.exactly.once.source.support"] == "enabled"
    assert found["listeners"] == "http://127.0.0.1:8099"
    assert found["tasks.max"] == "2"


@pytest.mark.parametrize("form", ["properties", "strimzi"])
def test_the_patterns_match_exactly_the_mirrored_topics(form):
    if form == "properties":
        patterns = parsed()["dc1->centre.topics"].split(", ")
    else:
        patterns = [yaml.safe_load(strimzi(MIRROR, mirrored(TOPICS)))["spec"]["mirrors"][0]["topicsPattern"]]
    others = [topic.name for topic in TOPICS] + ["telemetryXlines", "events.v2", "inventory.v2"]
    matched = {name for name in others if any(re.fullmatch(pattern, name) for pattern in patterns)}
    assert matched == {topic.name for topic in mirrored(TOPICS)}


def test_the_resource_of_strimzi():
    resource = yaml.safe_load(strimzi(MIRROR, mirrored(TOPICS)))
    assert resource["metadata"] == {"name": "mirror-dc1"}
    target, (flow,) = resource["spec"]["target"], resource["spec"]["mirrors"]
    assert target["alias"] == "centre" and target["bootstrapServers"] == "c:9092"
    assert target["config"]["exactly.once.source.support"] == "enabled"
    assert flow["source"] == {"alias": "dc1", "bootstrapServers": "a:9092,b:9092"}
    assert flow["sourceConnector"]["config"]["offset-syncs.topic.location"] == "target"
    assert flow["sourceConnector"]["tasksMax"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("DC 1", "a:9092", "c:9092"), "site 'DC 1': use up to 31 lower-case"),
        (("centre", "a:9092", "c:9092"), "site 'centre': use up to 31 lower-case"),
        (("dc1", "a:9092,b:9092", "b:9092"), "--to b:9092: are brokers of the site itself"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(UserError) as raised:
        Mirror(*arguments)
    assert str(raised.value).startswith(message)
