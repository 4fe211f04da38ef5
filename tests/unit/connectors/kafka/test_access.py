"""Why nobody lets us in, told by what listens there: servers that speak TLS, or anything else, but not Kafka."""

import socketserver
import ssl
import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from confluent_kafka import KafkaError, KafkaException

from connectors.kafka import access
from connectors.kafka.access import missing_right, reach, why
from connectors.kafka.security import KafkaSecurity
from infra.errors import UserError
from infra.local.certificates import Authority


@pytest.fixture
def authority(tmp_path):
    made = Authority.create()
    made.save(tmp_path)
    return made


@pytest.fixture
def serve(tmp_path):
    """Starts a server that hangs up after a handshake by a certificate, or at once; gives its address."""
    servers = []

    def start(certificate=None):
        context = None
        if certificate:
            (tmp_path / "server.pem").write_bytes(b"".join(certificate))
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tmp_path / "server.pem")

        class Handler(socketserver.BaseRequestHandler):
            def handle(self):
                with suppress(OSError):
                    (context.wrap_socket(self.request, server_side=True) if context else self.request).close()

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return f"127.0.0.1:{server.server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def speak(monkeypatch, tmp_path):
    """Sets the security that the environment declares."""

    def declare(protocol, **files):
        values = {"kafka_sasl_username": "kappa", "kafka_sasl_password": "secret", "kafka_ssl_ca": tmp_path / "ca.crt"}
        security = KafkaSecurity(kafka_security_protocol=protocol, **values | files)
        monkeypatch.setattr(access, "load_security", lambda: security)
        monkeypatch.setattr(access, "client_config", lambda to: {"bootstrap.servers": to, **security.client()})

    return declare


def refusal(monkeypatch, bootstrap):
    monkeypatch.setattr(access, "REACH_SECONDS", 1)
    with pytest.raises(UserError) as refused:
        reach(bootstrap)
    return str(refused.value)


def test_an_authority_that_did_not_sign_is_named(authority, serve, speak, monkeypatch, tmp_path):
    speak("SASL_SSL")
    place = serve(Authority.create().issue("kafka"))
    assert refusal(monkeypatch, place) == (
        f"KAPPA_KAFKA_SSL_CA={tmp_path}/ca.crt: did not sign the certificate of {place} "
        "(unable to get local issuer certificate); give the CA that did"
    )


def test_a_brokers_certificate_that_has_expired_is_the_brokers_fault(authority, serve, speak, monkeypatch):
    speak("SSL")
    place = serve(authority.issue("kafka", -timedelta(hours=1)))
    assert refusal(monkeypatch, place) == f"{place}: the broker's certificate has expired; it needs another one"


@pytest.mark.parametrize(
    ("protocol", "speaks_tls", "said"),
    [
        ("PLAINTEXT", True, "KAPPA_KAFKA_SECURITY_PROTOCOL=PLAINTEXT: {} expects SASL_SSL or SSL"),
        ("SASL_SSL", False, "KAPPA_KAFKA_SECURITY_PROTOCOL=SASL_SSL: {} expects SASL_PLAINTEXT or PLAINTEXT"),
        (
            "SSL",
            True,
            "KAPPA_KAFKA_BOOTSTRAP={}: no Kafka broker answers to KAPPA_KAFKA_SECURITY_PROTOCOL=SSL; correct",
        ),
    ],
)
def test_a_protocol_that_nobody_speaks_there_is_named(authority, serve, speak, protocol, speaks_tls, said):
    speak(protocol)
    place = serve(authority.issue("kafka") if speaks_tls else None)
    assert why(place, None).startswith(said.format(place))


def test_where_nothing_listens_the_address_is_named(speak, authority, monkeypatch):
    speak("PLAINTEXT")
    assert refusal(monkeypatch, "127.0.0.1:1").startswith("KAPPA_KAFKA_BOOTSTRAP=127.0.0.1:1: no Kafka broker answers")


@pytest.mark.parametrize(
    ("code", "heard", "said"),
    [
        (
            KafkaError._AUTHENTICATION,
            "sasl_ssl://b-2:9093/2: SASL authentication error: invalid credentials",
            "KAPPA_KAFKA_SASL_USERNAME='kappa': b-2:9093 doesn't know it with this password; correct "
            "KAPPA_KAFKA_SASL_PASSWORD",
        ),
        (
            KafkaError._TRANSPORT,
            "ssl://b-2:9093/2: Receive failed: ssl/tls alert bad certificate: SSL alert number 42",
            "KAPPA_KAFKA_SSL_CERTIFICATE: is missing; b-2:9093 asks for a certificate",
        ),
    ],
)
def test_a_refusal_names_the_broker_and_the_setting(speak, authority, code, heard, said):
    speak("SASL_SSL")
    assert why("b-1:9093", KafkaError(code, heard)) == said


def test_a_certificate_that_a_broker_refuses_is_named(speak, authority, tmp_path):
    for name, content in zip(("own.crt", "own.key"), authority.issue("kappa"), strict=True):
        (tmp_path / name).write_bytes(content)
    speak("SSL", kafka_ssl_certificate=tmp_path / "own.crt", kafka_ssl_key=tmp_path / "own.key")
    heard = "ssl://b-2:9093/2: Receive failed: ssl/tls alert bad certificate: SSL alert number 42"
    assert why("b-1:9093", KafkaError(KafkaError._TRANSPORT, heard)) == (
        f"KAPPA_KAFKA_SSL_CERTIFICATE={tmp_path}/own.crt: b-2:9093 refuses it (bad certificate); "
        "give one that its authority has signed"
    )


def test_a_missing_right_is_told_from_other_errors(speak, authority):
    speak("SASL_SSL")
    denied = KafkaException(KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED, "Broker: Group authorization failed"))
    assert missing_right(denied) == (
        "a consumer group: KAPPA_KAFKA_SASL_USERNAME='kappa' lacks a right (Broker: Group authorization failed); "
        "`kappa acl` lists what each job needs"
    )
    assert missing_right(KafkaException(KafkaError(KafkaError._TIMED_OUT))) is None
