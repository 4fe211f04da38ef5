"""Whether brokers answer, let us in and show us our topics. If not, one line says what is to be mended."""

import re
import socket
import ssl
import time
from collections.abc import Iterable
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from threading import Event

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    ClusterMetadata,
    TopicDescription,
    TopicMetadata,
)

from connectors.kafka.client import make_admin
from connectors.kafka.refusals import refusal_since
from connectors.kafka.security import KafkaSecurity, client_config, load_security
from infra.errors import UserError

REACH_SECONDS = 8.0
ATTEMPT_SECONDS = 2.0  # a refusal is heard, and a signal seen, between two attempts
PROBE_SECONDS = 2.0
ANSWER_SECONDS = 15.0
# What a broker answers to a request for which a right is missing, and what the right is to.
RIGHTS = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "a topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "a consumer group",
    KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: "transactional ids",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the cluster",
}


def reach(bootstrap: str, patience: float = 0.0, stop: Event | None = None) -> AdminClient:
    """An admin client that has reached its brokers; raises UserError as `ask` does."""
    admin = make_admin(client_config(bootstrap), {"log_level": 0})
    ask(admin, bootstrap, patience=patience, stop=stop)
    return admin


def ask(
    client: AdminClient | Consumer,
    bootstrap: str,
    topic: str | None = None,
    patience: float = 0.0,
    stop: Event | None = None,
) -> ClusterMetadata:
    """What the brokers say of a topic, or of all topics that this user may see.

    It tries again until `patience` seconds are over, or `stop` is set. Without patience a refusal ends it at once;
    brokers that don't answer are waited for a little, as they may be about to start.

    Raises UserError saying why none answers: the address, name and password, a certificate.
    """
    began = time.monotonic()
    while True:
        attempt = time.monotonic()
        try:
            return client.list_topics(topic, timeout=ATTEMPT_SECONDS)
        except KafkaException as error:
            client.poll(0)  # calls back
            refusal = refusal_since(attempt)
            waited = time.monotonic() - began
            if waited < max(patience, 0 if refusal else REACH_SECONDS) and not (stop and stop.wait(0.5)):
                continue
            raise UserError(why(bootstrap, refusal)) from error


def describe_topic(consumer: Consumer, bootstrap: str, topic: str) -> TopicMetadata:
    """What the brokers say of one topic; its `error` says if there is none.

    Raises UserError as `ask` does, and if this user has no right to see the topic.
    """
    found = ask(consumer, bootstrap, topic).topics[topic]
    if found.error and found.error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
        raise UserError(no_right(f"topic {topic!r}"))
    return found


def why(bootstrap: str, refusal: KafkaError | None) -> str:
    """Why no broker lets us in, by the refusal that was heard, or by asking what listens there."""
    security = load_security()
    place = _place(refusal, bootstrap)
    if refusal is None:
        return _why_unanswered(place, bootstrap, security)
    if refusal.code() == KafkaError._AUTHENTICATION:
        return f"{security.identity}: {place} doesn't know it with this password; correct KAPPA_KAFKA_SASL_PASSWORD"
    if "verify failed" in refusal.str():
        return _why_untrusted(place, security)
    if security.kafka_ssl_certificate:
        said = refusal.str().rpartition("alert ")[0] and refusal.str().split("alert ")[1].partition(":")[0]
        return (
            f"{security.identity}: {place} refuses it ({said or refusal.str()}); give one that its authority has signed"
        )
    if refusal.code() != KafkaError._SSL:
        return f"KAPPA_KAFKA_SSL_CERTIFICATE: is missing; {place} asks for a certificate"
    return f"{place}: no TLS connection ({refusal.str()})"


def partitions_of(admin: AdminClient, topics: Iterable[str]) -> dict[str, int]:
    """The number of partitions of each of these topics that is there.

    Raises UserError for one that this user has no right to see, KafkaException if the broker fails.
    """
    wanted = set(topics)
    listed = admin.list_topics(timeout=ANSWER_SECONDS).topics
    found = {name: len(topic.partitions) for name, topic in listed.items() if name in wanted}
    # A topic without a right is left out of a list, as if there were none; asked by its name, the broker says so.
    for name, answer in described(admin, wanted - found.keys()):
        try:
            found[name] = len(answer.result().partitions)
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise UserError(no_right(f"topic {name!r}")) from error
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise
    return found


def described(admin: AdminClient, names: Iterable[str]) -> Iterable[tuple[str, Future[TopicDescription]]]:
    """What the broker says of each of these topics, asked by its name; nothing of none."""
    wanted = sorted(set(names))
    return admin.describe_topics(TopicCollection(wanted), request_timeout=ANSWER_SECONDS).items() if wanted else ()


def no_right(place: str, said: str = "") -> str:
    """The line that says that a right is missing, and to what."""
    return f"{place}: {load_security().identity} lacks a right{said}; `kappa acl` lists what each job needs"


def missing_right(error: KafkaException) -> str | None:
    """The line for an error that says that a right is missing; None for any other error."""
    fault = error.args[0]
    if not isinstance(fault, KafkaError) or fault.code() not in RIGHTS:
        return None
    return no_right(RIGHTS[fault.code()], f" ({fault.str()})")


def _place(refusal: KafkaError | None, bootstrap: str) -> str:
    """Which broker it was."""
    found = re.match(r"\w+://([^/]+:\d+)/", refusal.str()) if refusal else None
    return found[1] if found else bootstrap.split(",", maxsplit=1)[0]


def _why_untrusted(place: str, security: KafkaSecurity) -> str:
    reason = _handshake(place, security.kafka_ssl_ca) or "not verified"
    if "expired" in reason:
        return f"{place}: the broker's certificate has expired; it needs another one"
    if "mismatch" in reason or "doesn't match" in reason:
        return (
            f"{place}: the broker's certificate is for other names ({reason}); use one of them in KAPPA_KAFKA_BOOTSTRAP"
        )
    authority = security.kafka_ssl_ca or "the system's authorities"
    return f"KAPPA_KAFKA_SSL_CA={authority}: did not sign the certificate of {place} ({reason}); give the CA that did"


def _why_unanswered(place: str, bootstrap: str, security: KafkaSecurity) -> str:
    unanswered = f"KAPPA_KAFKA_BOOTSTRAP={bootstrap}: no Kafka broker answers"
    try:
        _connect(place).close()
    except OSError:
        return f"{unanswered}; start one by `kappa infra up` or correct it"
    speaks_tls = _handshake(place, None, verify=False) is None
    if speaks_tls != security.uses_tls:
        wanted = "SASL_SSL or SSL" if speaks_tls else "SASL_PLAINTEXT or PLAINTEXT"
        return f"KAPPA_KAFKA_SECURITY_PROTOCOL={security.kafka_security_protocol}: {place} expects {wanted}"
    return f"{unanswered} to KAPPA_KAFKA_SECURITY_PROTOCOL={security.kafka_security_protocol}; correct one of them"


def _handshake(place: str, authority: Path | None, *, verify: bool = True) -> str | None:
    """What is wrong with a TLS connection to a place, as librdkafka doesn't say it; None if it can be made."""
    context = ssl.create_default_context(cafile=str(authority) if authority else None)
    if not verify:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with _connect(place) as plain, closing(context.wrap_socket(plain, server_hostname=place.rpartition(":")[0])):
            return None
    except ssl.SSLCertVerificationError as error:
        return error.verify_message
    except OSError as error:
        return str(error)


def _connect(place: str) -> socket.socket:
    host, _, port = place.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), PROBE_SECONDS)
