"""Each form in which a private key is written is one with which a broker lets us in: librdkafka, and Java's clients."""

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from connectors.java_class import java_class
from connectors.kafka.client import make_admin
from connectors.kafka.security import KafkaSecurity
from infra.files import write_private
from infra.local.certificates import Authority
from infra.local.identities import ADMIN
from infra.local.kafka import CLUSTER_ID

ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
RSA = rsa.generate_private_key(65537, 2048)


@pytest.fixture
def certified(secured, tmp_path):
    """Gives a user's settings, with a certificate for a key that is written in a form."""

    def with_key(key, form):
        certificate, written = Authority.load(secured.identities.folder).issue(ADMIN, key=key)
        pem = load_pem_private_key(written, None).private_bytes(Encoding.PEM, form, NoEncryption())
        write_private(tmp_path / "tls.crt", certificate)
        write_private(tmp_path / "tls.key", pem)
        files = {"kafka_ssl_certificate": tmp_path / "tls.crt", "kafka_ssl_key": tmp_path / "tls.key"}
        ca = secured.identities.authority
        return KafkaSecurity(kafka_security_protocol="SSL", kafka_ssl_ca=ca, **files), pem

    return with_key


@pytest.mark.parametrize(
    ("key", "form", "heading"),
    [
        (RSA, PrivateFormat.TraditionalOpenSSL, "RSA PRIVATE KEY"),  # PKCS#1
        (ELLIPTIC, PrivateFormat.TraditionalOpenSSL, "EC PRIVATE KEY"),  # its like, SEC1
        (RSA, PrivateFormat.PKCS8, "PRIVATE KEY"),
        (ELLIPTIC, PrivateFormat.PKCS8, "PRIVATE KEY"),
    ],
)
def test_both_kinds_of_client_are_let_in_with_each_form_of_key(secured, spark, certified, key, form, heading):
    security, pem = certified(key, form)
    assert pem.startswith(f"-----BEGIN {heading}-----".encode())
    at = {"bootstrap.servers": secured.broker.certificate_address}

    assert make_admin(at | security.client(), {"log_level": 0}).list_topics(timeout=30).cluster_id == CLUSTER_ID
    client = java_class(spark, "org.apache.kafka.clients.admin.AdminClient").create(at | security.java())
    try:
        assert client.describeCluster().clusterId().get() == CLUSTER_ID
    finally:
        client.close()
