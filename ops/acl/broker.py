"""The rights and users that a broker has, compared with those that are needed; creates and deletes them."""

import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialAlteration,
    UserScramCredentialUpsertion,
)

from connectors.kafka.access import no_right
from connectors.kafka.security import KafkaSecurity
from infra.errors import UserError
from infra.files import write_private
from jobs.runtime.rights import DESCRIBE, Kind, Right, operation_name
from ops.acl.principals import Rights

SECONDS = 15.0
ITERATIONS = 8192
PASSWORD = "kappa_kafka_sasl_password"

_KINDS: dict[Kind, ResourceType] = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
    "cluster": ResourceType.BROKER,  # librdkafka's name of what Kafka calls the cluster
}
_OPERATIONS = {operation_name(one): one for one in AclOperation}


@dataclass(frozen=True)
class Difference:
    """The rights of one principal (with its prefix) that a broker lacks, and those that nothing needs."""

    principal: str
    missing: frozenset[Right]
    superfluous: frozenset[Right]


def compare(admin: AdminClient, rights: Rights, prefix: str) -> list[Difference]:
    """Where a broker's rights differ from these, by principal.

    A principal whose name begins with `prefix` is ours: of one that is needed no more, every right is superfluous.

    Raises UserError without the right to ask for rights.
    """
    wanted = {f"{prefix}{name}": own for name, own in rights.items()}
    present = _present(admin)
    ours = {name for name in present if prefix and name.startswith(prefix)} | wanted.keys()
    nothing: frozenset[Right] = frozenset()
    found = [(name, wanted.get(name, nothing), present.get(name, nothing)) for name in sorted(ours)]
    return [Difference(name, own - there, there - own) for name, own, there in found if own != there]


def create(admin: AdminClient, differences: Iterable[Difference]) -> None:
    """Give the rights that are missing."""
    wanted = [_binding(one.principal, right) for one in differences for right in sorted(one.missing)]
    for answer in admin.create_acls(wanted, request_timeout=SECONDS).values() if wanted else ():
        answer.result()


def delete(admin: AdminClient, differences: Iterable[Difference]) -> None:
    """Take away the rights that nothing needs."""
    doomed = [_filter(_binding(one.principal, right)) for one in differences for right in sorted(one.superfluous)]
    for answer in admin.delete_acls(doomed, request_timeout=SECONDS).values() if doomed else ():
        answer.result()


def _present(admin: AdminClient) -> dict[str, frozenset[Right]]:
    # Without the right to ask, librdkafka gives an empty answer, as if there were no rights.
    allowed = admin.describe_cluster(include_authorized_operations=True, request_timeout=SECONDS).result()
    if AclOperation.DESCRIBE not in (allowed.authorized_operations or ()):
        raise UserError(no_right("the cluster", f" ({DESCRIBE})"))
    anything: Any = None
    every = AclBindingFilter(
        ResourceType.ANY, anything, ResourcePatternType.ANY, anything, anything, AclOperation.ANY, AclPermissionType.ANY
    )
    try:
        bindings = admin.describe_acls(every, request_timeout=SECONDS).result()
    except KafkaException as error:
        raise UserError(f"rights: {error.args[0].str()}; has the broker an authorizer?") from error
    found: dict[str, set[Right]] = {}
    for one in bindings:
        kind = next((kind for kind, type_ in _KINDS.items() if type_ == one.restype), None)
        if kind and one.permission_type == AclPermissionType.ALLOW and one.host == "*":
            is_prefix = one.resource_pattern_type == ResourcePatternType.PREFIXED
            right = Right(kind, one.name, operation_name(one.operation), is_prefix)
            found.setdefault(one.principal.removeprefix("User:"), set()).add(right)
    return {principal: frozenset(rights) for principal, rights in found.items()}


def _binding(principal: str, right: Right) -> AclBinding:
    pattern = ResourcePatternType.PREFIXED if right.is_prefix else ResourcePatternType.LITERAL
    allowed = _OPERATIONS[right.operation], AclPermissionType.ALLOW
    return AclBinding(_KINDS[right.kind], right.name, pattern, f"User:{principal}", "*", *allowed)


def _filter(binding: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        binding.restype, binding.name, binding.resource_pattern_type, binding.principal, binding.host,
        binding.operation, binding.permission_type,
    )  # fmt: skip


def make_users(admin: AdminClient, names: Iterable[str], folder: Path, security: KafkaSecurity) -> None:
    """Give each user (with its prefix) a password on the broker, and a folder for KAPPA_SECRETS below `folder`.

    A folder that is there keeps its password, which the broker gets again.
    """
    changes: list[UserScramCredentialAlteration] = []
    for name in names:
        own = folder / name
        if not (own / PASSWORD).is_file():
            _write(own, name, security)
        password = (own / PASSWORD).read_text().encode()
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, ITERATIONS)
        changes.append(UserScramCredentialUpsertion(name, info, password))
    for answer in admin.alter_user_scram_credentials(changes).values():
        answer.result(SECONDS)


def _write(folder: Path, name: str, security: KafkaSecurity) -> None:
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    files = {
        "kappa_kafka_security_protocol": "SASL_SSL" if security.uses_tls else "SASL_PLAINTEXT",
        "kappa_kafka_sasl_mechanism": "SCRAM-SHA-512",
        "kappa_kafka_sasl_username": name,
        PASSWORD: secrets.token_urlsafe(24),
    }
    if security.kafka_ssl_ca:
        files["kappa_kafka_ssl_ca"] = str(security.kafka_ssl_ca.resolve())
    for file, content in files.items():
        write_private(folder / file, content.encode())
