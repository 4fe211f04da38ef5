"""Which machines a topic's writer may speak for."""

import json

import pytest
from pyspark.sql import functions as F

from infra.contract.topics import Identity, TopicMap, load_topics
from jobs.enrichment.identity import PRINCIPAL_BYTES, with_principal, with_principals_only
from jobs.enrichment.transform import enrichment
from tests.unit.jobs.enrichment.test_transform import NOW, TOPIC, batch, fact, frames, point

DECLARED = load_topics()


def topics_with(**identity):
    """The map in which the topic has one writer, acme, who may speak for some machines."""
    changed = DECLARED[TOPIC].model_copy(update={"written_by": ("acme",), "identity": Identity(**identity)})
    return TopicMap({**DECLARED.topics, TOPIC: changed})


@pytest.fixture
def verdicts(spark):
    """Where a batch of each machine goes: `events`, or the code for which it is rejected."""

    def judged(topics, *machines, facts=(), principal=None, **fields):
        decoded, inventory = frames(spark, [batch(point(), machine=one) | fields for one in machines], facts)
        if principal:
            decoded = decoded.withColumn("principal", F.lit(principal))
        rows = enrichment(topics)(decoded, inventory).collect()
        found = [(row.topic, json.loads(row.value)) for row in rows]
        return {record["machine"]: record.get("code", topic) for topic, record in found}

    return judged


def test_by_their_names(verdicts):
    machines = ("acme", "acme-vm-1", "acme/ns/pod-1", "acmecorp-vm-1", "vm-1", "other-vm-1")
    assert verdicts(topics_with(machines="prefix"), *machines) == {
        "acme": "events",
        "acme-vm-1": "events",
        "acme/ns/pod-1": "events",
        "acmecorp-vm-1": "forged",
        "vm-1": "forged",
        "other-vm-1": "forged",
    }


def test_by_what_the_inventory_says(verdicts):
    facts = {"vm-1": [fact("vm-1", tenant="acme")], "vm-2": [fact("vm-2", tenant="other")], "vm-3": [fact("vm-3")]}
    found = verdicts(topics_with(machines="tenant"), "vm-1", "vm-2", "vm-3", "vm-4", facts=facts)
    assert found == {"vm-1": "events", "vm-2": "forged", "vm-3": "forged", "vm-4": "forged"}


def test_what_a_record_says_of_its_own_tenant_proves_nothing(verdicts):
    claims = {"host.name": "vm-1", "tenant": "acme", "service.namespace": "acme", "openstack.project.name": "acme"}
    assert verdicts(topics_with(machines="tenant"), "vm-1", resource=claims) == {"vm-1": "forged"}


def test_a_fact_that_came_later_does_not_count(verdicts):
    later = {"vm-1": [fact("vm-1", known=NOW + 10**9, tenant="acme")]}
    assert verdicts(topics_with(machines="tenant"), "vm-1", facts=later) == {"vm-1": "forged"}


def test_by_what_a_gateway_says_in_a_header(verdicts):
    topics = topics_with(machines="prefix", principal_header="kappa-principal")
    assert verdicts(topics, "beta-1", "acme-1", principal="beta") == {"beta-1": "events", "acme-1": "forged"}


def test_the_gateways_header_is_taken_out_of_the_record(spark):
    topics = topics_with(machines="prefix", principal_header="kappa-principal")
    rows = [(TOPIC, [("trace", b"1"), ("kappa-principal", b"beta")]), (TOPIC, None), ("telemetry.lines", None)]
    frame = spark.createDataFrame(rows, "topic string, headers array<struct<key: string, value: binary>>")
    found = with_principal(frame, topics.telemetry)
    assert found.columns == ["topic", "principal"]
    assert [row.principal for row in found.collect()] == ["beta", None, None]


def test_of_the_headers_only_a_principal_of_bounded_length_stays(spark):
    topics = topics_with(machines="prefix", principal_header="kappa-principal")
    named, long = ("kappa-principal", b"beta"), ("kappa-principal", b"b" * (PRINCIPAL_BYTES + 1))
    rows = [(TOPIC, [("trace", b"1"), named]), (TOPIC, [long]), ("telemetry.lines", [named])]
    frame = spark.createDataFrame(rows, "topic string, headers array<struct<key:string,value:binary>>")
    found = with_principals_only(frame, topics.telemetry).collect()
    assert [row.headers for row in found] == [[named], [], []]
    assert {row.headers for row in with_principals_only(frame, DECLARED.telemetry).collect()} == {None}


def test_other_topics_are_as_they_were(verdicts):
    topics = topics_with(machines="prefix")
    assert verdicts(topics, "vm-1", topic="telemetry.lines") == {"vm-1": "events"}


def test_a_forged_record_keeps_its_events_and_says_why(spark):
    decoded, inventory = frames(spark, [batch(point(value=0.25), machine="vm-1")])
    (row,) = enrichment(topics_with(machines="prefix"))(decoded, inventory).collect()
    letter = json.loads(row.value)
    assert (letter["code"], letter["reason"]) == (
        "forged",
        "the record is about a machine that its writer may not speak for",
    )
    assert json.loads(letter["batch"])["events"]["value"] == [0.25]
