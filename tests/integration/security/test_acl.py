"""`kappa acl` on a real broker with an authorizer."""

import json

import pytest

from connectors.kafka.security import KafkaSecurity
from jobs.runtime.rights import CLUSTER, DESCRIBE, READ, WRITE, Right

OPERATOR, DETECTOR = "kappa-operator", "kappa-detector"


@pytest.fixture(scope="module")
def users(secured):
    """The users of the installation, with their rights; their folders lie beside the others'."""
    folder = secured.identities.folder / "users"
    assert secured.kappa("acl", "apply", "--users", str(folder)).code == 0
    return folder


def differences(secured):
    found = secured.kappa("acl", "describe", "--json", whole=True)
    return found.code, {(row["principal"], row["state"], row["right"]) for row in json.loads(found.text)}


def test_what_was_applied_is_what_is_needed(secured, users, report):
    assert differences(secured) == (0, set())
    report.client("acl apply", secured_broker=True)


def test_what_is_missing_and_what_is_too_much_is_shown_and_mended(secured, users):
    secured.allow(DETECTOR, Right("topic", "inventory", READ))
    secured.deny(DETECTOR, Right("topic", "statistics", READ))
    found = {
        (DETECTOR, "missing", "Read on topic statistics"),
        (DETECTOR, "superfluous", "Read on topic inventory"),
    }
    assert differences(secured) == (1, found)
    assert secured.kappa("acl", "apply").code == 1  # there is still one too much
    assert secured.kappa("acl", "apply", "--prune").code == 0
    assert differences(secured) == (0, set())


def test_a_user_that_is_needed_no_more_keeps_no_right(secured, users):
    secured.allow("kappa-former", Right("topic", "events", READ))
    assert differences(secured) == (1, {("kappa-former", "superfluous", "Read on topic events")})
    assert secured.kappa("acl", "apply", "--prune").code == 0


def test_who_made_a_user_and_who_uses_it_agree(secured, users, report):
    security = KafkaSecurity(_secrets_dir=str(users / DETECTOR))
    assert security.kafka_sasl_username == DETECTOR
    assert secured.kappa("topics", "describe", "novelties", user=DETECTOR).code == 0
    report.client("topics describe", secured_broker=True)


def test_a_user_keeps_its_password(secured, users):
    before = (users / DETECTOR / "kappa_kafka_sasl_password").read_text()
    assert secured.kappa("acl", "apply", "--users", str(users)).code == 0
    assert (users / DETECTOR / "kappa_kafka_sasl_password").read_text() == before


def test_a_job_sees_its_own_topics_only(secured, users):
    whatever_else = Right("cluster", CLUSTER, DESCRIBE)
    secured.allow(DETECTOR, whatever_else)
    seen = {name for name in secured.client(DETECTOR).list_topics(timeout=20).topics if not name.startswith("__")}
    secured.deny(DETECTOR, whatever_else)
    assert seen == {"statistics", "novelties", "incidents", "events.rejected", "sink.progress"}


@pytest.mark.parametrize(
    "right",
    [
        Right("topic", "statistics", READ),
        Right("topic", "novelties", WRITE),
        Right("topic", "sink.progress", READ),
        Right("group", "kappa.live.incidents", READ, is_prefix=True),
        Right("group", "kappa.reader", READ),
    ],
)
def test_a_job_that_lacks_a_right_says_which_before_it_starts(secured, users, right):
    secured.deny(DETECTOR, right)
    outcome = secured.kappa("run", "detector", user=DETECTOR)
    secured.allow(DETECTOR, right)
    assert (outcome.code, outcome.seconds < 15) == (2, True)
    said = f"kappa: {right.kind} {right.name!r}: KAPPA_KAFKA_SASL_USERNAME='{DETECTOR}' lacks"
    assert outcome.last_line.startswith(said)


def test_whoever_may_not_see_rights_is_not_told_that_there_are_none(secured, users):
    outcome = secured.kappa("acl", "describe", user=OPERATOR)
    assert outcome.code == 2
    assert outcome.last_line.startswith(f"kappa: the cluster: KAPPA_KAFKA_SASL_USERNAME='{OPERATOR}' lacks a right")
