import pytest

from connectors.kafka.security import KafkaSecurity, client_config

CA = "-----BEGIN CERTIFICATE-----\nca\n"


@pytest.fixture
def pem(tmp_path):
    for name, text in {"ca.crt": CA, "user.crt": "certificate", "user.key": "key"}.items():
        (tmp_path / name).write_text(text)
    return tmp_path


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
        "kafka.ssl.truststore.certificates": CA,
    }


def test_a_client_certificate(pem):
    files = {"kafka_ssl_certificate": pem / "user.crt", "kafka_ssl_key": pem / "user.key"}
    security = KafkaSecurity(kafka_security_protocol="SSL", **files)

    assert security.client() == {
        "security.protocol": "SSL",
        "ssl.certificate.location": str(pem / "user.crt"),
        "ssl.key.location": str(pem / "user.key"),
    }
    assert security.spark() == {
        "kafka.security.protocol": "SSL",
        "kafka.ssl.keystore.type": "PEM",
        "kafka.ssl.keystore.certificate.chain": "certificate",
        "kafka.ssl.keystore.key": "key",
    }


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
