"""The rights that follow from a row of the table and the map."""

from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AclOperation

from infra.contract.topics import load_topics
from jobs.runtime.rights import Right, first_missing, operation_name, rights_of
from jobs.table import JOBS

TOPICS = load_topics()


def of(job, generation="live", topics=TOPICS):
    return rights_of(JOBS[job], topics, generation)


def on(rights, kind):
    return {(right.name, right.operation) for right in rights if right.kind == kind and "Config" not in right.operation}


def test_a_fold_reads_its_topic_and_its_progress_and_writes_what_its_row_says():
    assert on(of("detector"), "topic") == {
        ("statistics", "Read"),
        ("sink.progress", "Read"),
        ("novelties", "Write"),
        ("events.rejected", "Write"),
    }


def test_groups_and_transactional_ids_are_a_jobs_own():
    assert on(of("detector"), "group") == {("kappa.live.detector", "Read"), ("kappa.reader", "Read")}
    assert on(of("detector"), "transactional-id") == {("kappa.live.detector", "Write")}
    assert all(right.is_prefix for right in of("detector") if right.name == "kappa.live.detector")


def test_enrichment_reads_what_it_looks_up_too():
    assert {("inventory", "Read"), ("events.retry", "Read"), ("telemetry.collectd", "Read")} <= on(
        of("enrichment"), "topic"
    )


def test_the_archive_writes_no_topic():
    assert {operation for _, operation in on(of("archive"), "topic")} == {"Read"}


def test_a_job_that_keeps_its_journal_in_a_topic_reads_it():
    assert {("notifications", "Read"), ("notifications", "Write")} <= on(of("notifier"), "topic")


def test_a_job_that_only_follows_its_group_needs_no_other():
    assert on(of("indexer"), "group") == {("kappa.live.indexer", "Read")}


def test_a_generation_has_rights_of_its_own_and_reads_its_plan():
    topics = JOBS.topics_in(TOPICS, "v2", ("detector", "incidents"))
    rights = of("detector", "v2", topics)
    assert on(rights, "topic") == {
        ("statistics", "Read"),
        ("sink.progress", "Read"),
        ("generations", "Read"),
        ("novelties.v2", "Write"),
        ("events.rejected.v2", "Write"),
    }
    assert on(rights, "transactional-id") == {("kappa.v2.detector", "Write")}


def test_limits_are_asked_of_each_topic_that_is_used():
    configured = {right.name for right in of("detector") if right.operation == "DescribeConfigs"}
    assert configured == {"statistics", "sink.progress", "novelties", "events.rejected", "kafka-cluster"}


# What a broker says of them

DENIED = KafkaException(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED))
READ, WRITE = AclOperation.READ, AclOperation.WRITE


class Broker:
    """Answers with the operations that are allowed, or with an error."""

    def __init__(self, **answers):
        self.answers = answers

    def _answer(self, name):
        found = self.answers.get(name, DENIED)

        def result():
            if isinstance(found, Exception):
                raise found
            return SimpleNamespace(authorized_operations=found)

        return SimpleNamespace(result=result)

    def describe_topics(self, names, **_):
        return {name: self._answer(name) for name in names.topic_names}

    def describe_consumer_groups(self, names, **_):
        return {name: self._answer(name) for name in names}


WANTED = [Right("topic", "events", "Read"), Right("topic", "novelties", "Write"), Right("group", "kappa", "Read", True)]


@pytest.mark.parametrize(
    ("answers", "missing"),
    [
        ({"events": [READ], "novelties": [WRITE], "kappa": [READ]}, None),
        ({"events": [READ], "novelties": [READ], "kappa": [READ]}, WANTED[1]),
        ({"novelties": [WRITE], "kappa": [READ]}, WANTED[0]),
        ({"events": [READ], "novelties": [WRITE], "kappa": []}, WANTED[2]),
        ({"events": None, "novelties": None, "kappa": None}, None),  # a broker that doesn't say
        ({"events": KafkaException(KafkaError(KafkaError._TIMED_OUT)), "novelties": [WRITE], "kappa": [READ]}, None),
    ],
)
def test_the_first_right_that_is_missing_is_found(answers, missing):
    assert first_missing(Broker(**answers), WANTED) == missing


def test_operations_are_called_as_kafkas_tools_call_them():
    assert [operation_name(one) for one in (READ, AclOperation.DESCRIBE_CONFIGS)] == ["Read", "DescribeConfigs"]
