import stat

import pytest
from cryptography import x509

from connectors.kafka.security import KafkaSecurity
from infra.local.identities import Identities


@pytest.fixture
def identities(tmp_path):
    made = Identities(tmp_path / "security")
    made.create()
    return made


def test_a_users_folder_is_all_that_a_client_needs(identities, monkeypatch):
    monkeypatch.setenv("KAPPA_SECRETS", str(identities.user("admin")))
    assert KafkaSecurity().client() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "admin",
        "sasl.password": identities.password("admin"),
        "ssl.ca.location": str(identities.authority),
    }


def test_a_user_has_a_certificate_of_the_authority_with_its_name(identities):
    folder = identities.add("detector")
    own = x509.load_pem_x509_certificate((folder / "tls.crt").read_bytes())
    own.verify_directly_issued_by(x509.load_pem_x509_certificate(identities.authority.read_bytes()))
    assert own.subject.rfc4514_string() == "CN=detector"
    security = KafkaSecurity(
        kafka_security_protocol="SSL", kafka_ssl_certificate=folder / "tls.crt", kafka_ssl_key=folder / "tls.key"
    )
    assert security.java()["ssl.keystore.key"].startswith("-----BEGIN PRIVATE KEY-----")


def test_a_user_stays_as_it_is_and_has_a_password_of_its_own(identities):
    first = identities.password("admin")
    identities.create()
    identities.add("admin")
    identities.add("detector")
    assert identities.password("admin") == first != identities.password("detector")
    assert list(identities.users()) == ["admin", "detector"]


def test_nobody_else_can_read_a_secret(identities):
    folder = identities.user("admin")
    secrets = [identities.broker, identities.folder / "ca.key", *folder.iterdir()]
    assert {stat.S_IMODE(file.stat().st_mode) for file in secrets} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_removed_they_are_no_more(identities):
    identities.remove()
    assert not identities.exist
