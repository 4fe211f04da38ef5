"""What a secured broker refuses is said in one line, soon, with exit code 2."""

import re
from datetime import timedelta

import pytest
import yaml

from infra.local.certificates import Authority
from infra.local.identities import BROKER

SECONDS = 15


@pytest.fixture(autouse=True)
def recorded(secured, report, request, monkeypatch):
    """Each command that is refused in this module is a case of the report, by the names of test and command."""
    run, case = secured.kappa, request.node.originalname.removeprefix("test_").replace("_", " ")

    def kappa(*arguments, **changes):
        outcome = run(*arguments, **changes)
        if outcome.code:
            report.wrong(f"{case}: kappa {' '.join(arguments)}", outcome)
        return outcome

    monkeypatch.setattr(secured, "kappa", kappa)


@pytest.fixture(scope="module")
def stranger(secured):
    """A user whom the broker knows, and who may do nothing."""
    secured.add("stranger")
    return "stranger"


@pytest.fixture(scope="module")
def needed(tmp_path_factory):
    """The variables without which a command would refuse to begin, before it asks the broker."""
    home = tmp_path_factory.mktemp("home")
    channels = {"hook": {"kind": "webhook", "url": "http://127.0.0.1:1"}}
    sent = [{"name": "all", "topics": ["incidents"], "channels": ["hook"]}]
    (home / "routes.yaml").write_text(yaml.safe_dump({"channels": channels, "routes": sent}))
    (home / "truth").mkdir()
    (home / "truth" / "windows.jsonl").touch()
    nowhere = "https://127.0.0.1:1"
    routes = str(home / "routes.yaml")
    return {"KAPPA_NOTIFIER_ROUTES": routes, "KAPPA_HOME": str(home), "KAPPA_ELASTICSEARCH_URL": nowhere}


@pytest.fixture
def issue(secured, tmp_path):
    """Writes a certificate; gives the variables that make a client show it."""

    def write(authority, **valid):
        for name, content in zip(("tls.crt", "tls.key"), authority.issue("admin", **valid), strict=True):
            (tmp_path / name).write_bytes(content)
        return secured.certificate() | {
            "KAPPA_KAFKA_SSL_CERTIFICATE": str(tmp_path / "tls.crt"),
            "KAPPA_KAFKA_SSL_KEY": str(tmp_path / "tls.key"),
        }

    return write


def refused(outcome, said):
    assert (outcome.code, outcome.last_line) == (2, f"kappa: {said}")
    assert outcome.seconds < SECONDS


def test_whoever_has_the_password_or_the_certificate_is_let_in(secured):
    assert secured.kappa("topics", "describe").code == 0
    assert secured.kappa("topics", "describe", **secured.certificate()).code == 0


@pytest.mark.parametrize(
    "command",
    [
        ("topics", "describe"),
        ("rejected", "list"),
        ("detector", "rules"),
        ("inventory", "show", "vm-1"),
        ("replay", "list"),
        ("savepoint", "create", "x", "--all"),
        ("savepoint", "create", "x", "--job", "enrichment"),
        ("simulate", "--duration", "5s"),
        ("host", "--no-journal"),
        ("verify",),
        ("run", "indexer"),
        ("run", "notifier"),
        ("run", "enrichment"),
        ("run", "enrichment", "--realtime"),
    ],
    ids=" ".join,
)
def test_a_wrong_password(secured, needed, command):
    outcome = secured.kappa(*command, **needed, KAPPA_KAFKA_SASL_PASSWORD="wrong")
    said = f"KAPPA_KAFKA_SASL_USERNAME='admin': {secured.bootstrap} doesn't know it with this password; "
    refused(outcome, said + "correct KAPPA_KAFKA_SASL_PASSWORD")


def test_an_authority_that_did_not_sign_the_brokers_certificate(secured, tmp_path):
    Authority.create().save(tmp_path)
    outcome = secured.kappa("topics", "describe", KAPPA_KAFKA_SSL_CA=str(tmp_path / "ca.crt"))
    said = f"KAPPA_KAFKA_SSL_CA={tmp_path}/ca.crt: did not sign the certificate of {secured.bootstrap} "
    refused(outcome, said + "(unable to get local issuer certificate); give the CA that did")


def test_a_certificate_that_has_expired(secured, issue):
    outcome = secured.kappa(
        "topics", "describe", **issue(Authority.load(secured.identities.folder), valid=-timedelta(days=1))
    )
    assert "tls.crt: expired at 20" in outcome.last_line
    assert outcome.code == 2 and outcome.seconds < SECONDS


def test_a_certificate_of_a_strange_authority(secured, issue, tmp_path):
    outcome = secured.kappa("topics", "describe", **issue(Authority.create()))
    assert outcome.code == 2 and outcome.seconds < SECONDS
    # Java says of the same thing now `bad certificate`, now `certificate unknown`.
    said = re.sub(r"\(.*\)", "(…)", outcome.last_line)
    assert said == (
        f"kappa: KAPPA_KAFKA_SSL_CERTIFICATE={tmp_path}/tls.crt: {secured.broker.certificate_address} refuses it (…); "
        "give one that its authority has signed"
    )


def test_a_brokers_certificate_that_has_expired(secured):
    expired, key = Authority.load(secured.identities.folder).issue(BROKER, valid=-timedelta(days=1))
    with secured.shown(secured.bootstrap, key + expired):
        outcome = secured.kappa("topics", "describe")
    refused(outcome, f"{secured.bootstrap}: the broker's certificate has expired; it needs another one")
    assert secured.kappa("topics", "describe").code == 0


def test_a_client_that_speaks_no_tls(secured):
    outcome = secured.kappa("topics", "describe", KAPPA_KAFKA_SECURITY_PROTOCOL="PLAINTEXT")
    refused(outcome, f"KAPPA_KAFKA_SECURITY_PROTOCOL=PLAINTEXT: {secured.bootstrap} expects SASL_SSL or SSL")


@pytest.mark.parametrize(
    ("command", "topic"),
    [
        (("run", "archive"), "alerts"),
        (("rejected", "list"), "events.rejected"),
        (("simulate", "--duration", "5s"), "inventory"),
        (("inventory", "show", "vm-1"), "inventory"),
        (("detector", "reset", "x", "--machine", "vm-1"), "detector.control"),
    ],
)
def test_a_topic_without_a_right_is_not_taken_for_a_missing_one(secured, stranger, command, topic, tmp_path):
    outcome = secured.kappa(*command, user=stranger)
    said = "KAPPA_KAFKA_SASL_USERNAME='stranger' lacks a right"
    assert outcome.code == 2 and outcome.seconds < SECONDS
    assert outcome.last_line.startswith(f"kappa: topic {topic!r}: {said}")
