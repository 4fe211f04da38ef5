"""Two tenants on one broker: each writes its own topic, and one that floods is slowed alone."""

import statistics
import threading
import time

import pytest
import yaml
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka.client import make_producer
from infra.contract.topics import DEFAULT_MAP

ACME, BETA = "telemetry.acme", "telemetry.beta"
QUOTA_BYTES = 200_000  # a second
FLOOD_SECONDS = 8


@pytest.fixture(scope="module")
def tenants(secured, tmp_path_factory):
    """The variables of an installation with two tenants, who have their rights and quotas."""
    declared = yaml.safe_load(DEFAULT_MAP.read_text())
    for topic, tenant in ((ACME, "acme"), (BETA, "beta")):
        declared["topics"][topic] = {
            "group": "telemetry",
            "format": "lines_json",
            "key": "any",
            "about": "of a tenant",
            "written_by": [tenant],
            "identity": {"machines": "tenant"},
        }
    declared["quotas"] = {"acme": {"produce_bytes": QUOTA_BYTES}, "beta": {"produce_bytes": 10 * QUOTA_BYTES}}
    path = tmp_path_factory.mktemp("map") / "topics.yaml"
    path.write_text(yaml.safe_dump(declared))
    variables = {"KAPPA_TOPICS_FILE": str(path)}
    assert secured.kappa("topics", "apply", **variables).code == 0
    # With quotas the administrator may alter the cluster's settings, and so needs no right to see them.
    users = str(secured.identities.user(""))
    assert secured.kappa("acl", "apply", "--prune", "--users", users, **variables).code == 0
    yield variables
    secured.admin.delete_topics([ACME, BETA])
    assert secured.kappa("acl", "apply", "--prune").code == 0


class Tenant:
    """A tenant's collector."""

    def __init__(self, secured, name):
        settings = {"log_level": 0, "linger.ms": 0, "acks": "all"}
        self.producer = make_producer(secured.connection(f"kappa-{name}"), settings)

    def write(self, topic, size=200):
        """Write a record; the seconds that it took, or the error."""
        failed = []
        began = time.monotonic()
        try:
            self.producer.produce(topic, b"x" * size, on_delivery=lambda error, _: failed.append(error))
        except KafkaException as refused:  # librdkafka knew the broker's answer before the record was queued
            return refused.args[0]
        assert self.producer.flush(30) == 0
        return failed[0] or time.monotonic() - began

    def flood(self, topic, seconds):
        """Write as fast as the broker takes it; bytes a second."""
        written, end = 0, time.monotonic() + seconds
        while time.monotonic() < end:
            self.write(topic, 50_000)
            written += 50_000
        return written / seconds


def test_a_tenant_writes_its_own_topic_and_no_other(secured, tenants, report):
    acme, others = Tenant(secured, "acme"), (BETA, "telemetry.lines", "events", "detector.control", "generations")
    assert acme.write(ACME) < 30
    for topic in others:
        assert acme.write(topic).code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    report.tenants(writes=[ACME], refused=others)


def test_quotas_are_applied_once_and_stay(secured, tenants, report):
    found = secured.kappa("topics", "apply", whole=True, **tenants).text
    lines = {line.split()[2]: line.split()[3] for line in found.splitlines() if "quota of" in line}
    assert lines == {"kappa-acme": "same", "kappa-beta": "same"}
    report.tenants(quotas=lines)


def test_a_tenant_that_floods_is_slowed_and_its_neighbour_is_not(secured, tenants, report):
    acme, beta = Tenant(secured, "acme"), Tenant(secured, "beta")
    alone = [beta.write(BETA) for _ in range(40)]
    rates = []
    flooding = threading.Thread(target=lambda: rates.append(acme.flood(ACME, FLOOD_SECONDS)))
    flooding.start()
    beside = []
    while flooding.is_alive():
        beside.append(beta.write(BETA))
    report.tenants(
        quota_bytes_per_second=QUOTA_BYTES,
        noisy_bytes_per_second=round(rates[0]),
        neighbour_alone_ms=round(1000 * statistics.median(alone), 1),
        neighbour_beside_ms=round(1000 * statistics.median(beside), 1),
    )
    # A broker counts over some seconds, and lets through what it hasn't counted yet.
    assert rates[0] < 3 * QUOTA_BYTES
    assert statistics.median(beside) < 3 * statistics.median(alone) + 0.05
    assert len(beside) > 40


def test_quotas_need_the_right_to_alter_the_cluster(secured, tenants):
    outcome = secured.kappa("topics", "apply", user="kappa-operator", **tenants)
    assert outcome.code == 2
    assert "lacks a right" in outcome.last_line
