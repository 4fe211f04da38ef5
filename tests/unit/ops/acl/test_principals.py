"""Who needs which rights, and how that is written down for others."""

import yaml

from infra.contract.topics import Quota, TopicMap, load_topics
from jobs.runtime.rights import Right
from jobs.table import JOBS
from ops.acl.elasticsearch import roles
from ops.acl.principals import principals
from ops.acl.render import commands, strimzi

TOPICS = load_topics()
LIVE = {"live": (JOBS.enabled(), TOPICS)}


def writes(rights):
    return {right.name for right in rights if (right.kind, right.operation) == ("topic", "Write")}


def test_each_collector_writes_its_own_topics_and_can_do_nothing_else():
    found = principals(LIVE)
    assert found["collectd"] == {Right("topic", "telemetry.collectd", "Write")}
    assert writes(found["rsyslog"]) == {"telemetry.syslog", "telemetry.syslog.rfc5424"}
    writers = [name for name, rights in found.items() if "telemetry.collectd" in writes(rights)]
    assert writers == ["administrator", "collectd"]


def test_only_people_who_operate_it_tell_the_detector_what_to_do():
    found = principals(LIVE, trial=True)
    assert [name for name, rights in found.items() if "detector.control" in writes(rights)] == [
        "administrator",
        "operator",
    ]
    assert [name for name, rights in found.items() if "generations" in writes(rights)] == ["administrator"]


def test_an_application_has_the_rights_of_all_its_jobs():
    assert writes(principals(LIVE)["detector"]) == {"novelties", "incidents", "events.rejected"}


def test_the_small_profile_has_one_user_for_all_jobs():
    found = principals(LIVE, small=True)
    assert {"enrichment", "detector"}.isdisjoint(found)
    assert {"events", "novelties"} <= writes(found["jobs"])


def test_the_simulator_is_for_trials():
    assert "simulator" not in principals(LIVE)
    assert writes(principals(LIVE, trial=True)["simulator"]) == {
        "inventory",
        "telemetry.lines",
        "telemetry.otlp.logs",
        "telemetry.otlp.metrics",
    }


def test_generations_add_up():
    planned = ("detector", "incidents")
    found = principals({**LIVE, "v2": (planned, JOBS.topics_in(TOPICS, "v2", planned))})
    assert writes(found["detector"]) == {
        f"{topic}{suffix}" for topic in ("novelties", "incidents", "events.rejected") for suffix in ("", ".v2")
    }
    assert writes(found["statistics"]) == writes(principals(LIVE)["statistics"])


def test_a_generation_that_begins_with_the_archive_reads_what_was_restored():
    jobs = ("statistics", "detector")
    generations = {**LIVE, "v2": (jobs, JOBS.topics_in(TOPICS, "v2", jobs))}
    found = principals(generations, restored={"v2": ["events.v2"]})
    assert found["statistics"] - principals(generations)["statistics"] == {Right("topic", "events.v2", "Read")}
    assert found["detector"] == principals(generations)["detector"]


def test_an_operator_reads_what_is_kept_and_neither_early_results_nor_progress_markers():
    read = {right.name for right in principals(LIVE)["operator"] if right.operation == "Read"}
    assert set(TOPICS.topics) - read == {"statistics.early", "sink.progress"}


def test_an_administrator_writes_and_deletes_only_what_a_generation_has_of_its_own():
    found = principals(LIVE)["administrator"]
    of_others = {right for right in found if right.kind == "topic" and right.operation in ("Write", "Delete")}
    kept = {"inventory", "sink.progress", "generations"}
    assert {str(right) for right in of_others if right.name in kept} == {"Write on topic generations"}
    assert {right.is_prefix for right in found if right.name in kept} == {False}
    assert Right("topic", "notifications", "Write", is_prefix=True) not in found


def test_no_right_is_given_twice():
    administrator = principals(LIVE)["administrator"]
    topics = {right.name for right in administrator if right.kind == "topic"}
    assert {"events", "telemetry.syslog"} <= topics
    assert not {"events.late", "telemetry.syslog.rfc5424"} & topics  # `events*` has it


def test_as_commands_of_kafkas_tools():
    lines = list(commands({"detector": principals(LIVE)["detector"]}, "kappa-", "b:9093"))
    begin = "kafka-acls --bootstrap-server b:9093 --add --allow-principal User:kappa-detector "
    assert {line.removeprefix(begin) for line in lines} >= {
        "--operation DescribeConfigs --cluster",
        "--operation DescribeConfigs --operation Read --topic statistics",
        "--operation Read --group kappa.live.detector --resource-pattern-type prefixed",
        "--operation Write --transactional-id kappa.live.detector --resource-pattern-type prefixed",
    }


def test_as_users_of_strimzi():
    quotas = {"detector": Quota(produce_bytes=1000, request_percent=50), "acme": Quota(consume_bytes=1)}
    (user,) = yaml.safe_load_all(strimzi({"detector": principals(LIVE)["detector"]}, quotas, "kappa-", "telemetry"))
    assert user["metadata"] == {"name": "kappa-detector", "labels": {"strimzi.io/cluster": "telemetry"}}
    assert user["spec"]["authentication"] == {"type": "scram-sha-512"}
    assert user["spec"]["quotas"] == {"producerByteRate": 1000, "requestPercentage": 50}
    acls = user["spec"]["authorization"]["acls"]
    assert {"resource": {"type": "cluster"}, "operations": ["DescribeConfigs"]} in acls
    assert {
        "resource": {"type": "transactionalId", "name": "kappa.live.detector", "patternType": "prefix"},
        "operations": ["Write"],
    } in acls


def test_who_applies_quotas_may_alter_the_clusters_settings():
    quotas = {"live": (JOBS.enabled(), TopicMap(TOPICS.topics, quotas={"acme": Quota(produce_bytes=1)}))}
    alters = Right("cluster", "kafka-cluster", "AlterConfigs")
    assert [name for name, rights in principals(quotas).items() if alters in rights] == ["administrator"]
    assert not [name for name, rights in principals(LIVE).items() if alters in rights]


def test_roles_in_elasticsearch_are_those_of_whoever_uses_it():
    found = roles(TOPICS)
    assert set(found) == {"administrator", "indexer", "operator", "viewer"}
    ((own,), (cluster,)) = found["indexer"]["indices"], found["indexer"]["cluster"]
    assert own["privileges"] == ["read", "write", "manage"] and cluster == "monitor"
    assert all(name.startswith("kappa-") for role in found.values() for name in role["indices"][0]["names"])
    assert set(roles(TOPICS, small=True)) == {"administrator", "jobs", "operator", "viewer"}
