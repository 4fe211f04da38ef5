from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from connectors.kafka.security import KafkaSecurity, client_config
from infra.local.certificates import Authority


@pytest.fixture
def authority():
    return Authority.create()


@pytest.fixture
def pem(tmp_path, authority):
    """A folder with an authority's certificate, and a user's with its key."""
    authority.save(tmp_path)
    for name, content in zip(("user.crt", "user.key"), authority.issue("user"), strict=True):
        (tmp_path / name).write_bytes(content)
    return tmp_path


def of_client(pem, **changes):
    files = {"kafka_ssl_certificate": pem / "user.crt", "kafka_ssl_key": pem / "user.key"}
    return KafkaSecurity(kafka_security_protocol="SSL", **files | changes)


def test_a_broker_that_asks_nothing_needs_no_settings():
    assert client_config("here:1") == {"bootstrap.servers": "here:1"}
    assert KafkaSecurity().spark() == {}


def test_sasl_over_tls_for_both_kinds_of_client(pem, monkeypatch):
    monkeypatch.setenv("KAPPA_KAFKA_SECURITY_PROTOCOL", "SASL_SSL")
    monkeypatch.setenv("KAPPA_KAFKA_SASL_USERNAME", "kappa")
    monkeypatch.setenv("KAPPA_KAFKA_SASL_PASSWORD", 'a"b\\c')
    monkeypatch.setenv("KAPPA_KAFKA_SSL_CA", str(pem / "ca.crt"))

    assert client_config("here:1") == {
        "bootstrap.servers": "here:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "kappa",
        "sasl.password": 'a"b\\c',
        "ssl.ca.location": str(pem / "ca.crt"),
    }
    assert KafkaSecurity().spark() == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="kappa" password="a\\"b\\\\c";',
        "kafka.ssl.truststore.type": "PEM",
        "kafka.ssl.truststore.certificates": (pem / "ca.crt").read_text(),
    }


def test_a_client_certificate(pem):
    security = of_client(pem)

    assert security.client() == {
        "security.protocol": "SSL",
        "ssl.certificate.location": str(pem / "user.crt"),
        "ssl.key.location": str(pem / "user.key"),
    }
    assert security.spark() == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": (pem / "user.crt").read_text(),
        "kafka.ssl.keystore.key": (pem / "user.key").read_text(),
    }


def test_java_gets_a_key_in_the_one_form_that_it_takes(pem):
    """PKCS#1, or its like of an elliptic curve, as openssl and some operators of certificates write it."""
    key = load_pem_private_key((pem / "user.key").read_bytes(), None)
    (pem / "old.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()))
    assert "BEGIN EC PRIVATE KEY" in (pem / "old.key").read_text()
    given = of_client(pem, kafka_ssl_key=pem / "old.key").java()["ssl.keystore.key"]
    assert given == (pem / "user.key").read_text()


def test_a_password_that_is_changed_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setenv("KAPPA_SECRETS", str(tmp_path))
    files = {"security_protocol": "SASL_PLAINTEXT", "sasl_username": "kappa", "sasl_password": "old"}
    for name, content in files.items():
        (tmp_path / f"kappa_kafka_{name}").write_text(content)
    assert client_config("here:1")["sasl.password"] == "old"
    (tmp_path / "kappa_kafka_sasl_password").write_text("new")
    assert client_config("here:1")["sasl.password"] == "new"


@pytest.mark.parametrize(
    ("given", "fault"),
    [
        ({"kafka_security_protocol": "SASL_SSL"}, "KAPPA_KAFKA_SASL_USERNAME and _PASSWORD: are missing"),
        ({"kafka_ssl_ca": "/nowhere"}, "kafka_ssl_ca"),
        ({"kafka_ssl_key": __file__}, "give both or neither"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(given, fault):
    with pytest.raises(ValueError, match=fault):
        KafkaSecurity(**given)


@pytest.mark.parametrize(
    ("file", "content", "fault"),
    [
        ("ca.crt", lambda _: b"nothing", r"KAPPA_KAFKA_SSL_CA=.*ca.crt: holds no certificate in PEM form"),
        ("user.crt", lambda ca: ca.issue("u", -timedelta(days=1))[0], r"_CERTIFICATE=.*user.crt: expired at 20"),
        ("user.key", lambda ca: ca.issue("u")[1], r"KAPPA_KAFKA_SSL_KEY=.*user.key: is not the key of the certificate"),
        ("user.key", lambda _: locked(), r"KAPPA_KAFKA_SSL_KEY=.*user.key: holds no key in PEM form, or one with a"),
    ],
)
def test_a_file_that_no_client_could_use_is_named(pem, authority, file, content, fault):
    (pem / file).write_bytes(content(authority))
    with pytest.raises(ValueError, match=fault):
        of_client(pem, kafka_ssl_ca=pem / "ca.crt")


def locked():
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret"))
