"""Rights in the forms in which others keep them: commands of Kafka's tools, KafkaUsers of Strimzi."""

import shlex
from collections.abc import Iterator, Mapping

import yaml

from infra.contract.topics import Quota
from ops.acl.principals import Rights, by_resource

STRIMZI = {"transactional-id": "transactionalId"}  # its word for a kind


def commands(rights: Rights, prefix: str, bootstrap: str) -> Iterator[str]:
    """A command of `kafka-acls` for each resource of each principal."""
    for principal, own in rights.items():
        for (kind, name, is_prefix), operations in by_resource(own).items():
            words = ["kafka-acls", "--bootstrap-server", bootstrap, "--add"]
            words += ["--allow-principal", f"User:{prefix}{principal}"]
            words += [word for operation in operations for word in ("--operation", operation)]
            words += ["--cluster"] if kind == "cluster" else [f"--{kind}", name]
            words += ["--resource-pattern-type", "prefixed"] if is_prefix else []
            yield shlex.join(words)


def strimzi(rights: Rights, quotas: Mapping[str, Quota], prefix: str, cluster: str) -> str:
    """A KafkaUser for each principal, whose password Strimzi makes."""
    return yaml.safe_dump_all(
        (
            {
                "apiVersion": "kafka.strimzi.io/v1",
                "kind": "KafkaUser",
                "metadata": {"name": f"{prefix}{principal}", "labels": {"strimzi.io/cluster": cluster}},
                "spec": {
                    "authentication": {"type": "scram-sha-512"},
                    "authorization": {"type": "simple", "acls": [_acl(*found) for found in by_resource(own).items()]},
                    **_quotas(quotas.get(principal)),
                },
            }
            for principal, own in rights.items()
        ),
        sort_keys=False,
    )


def _quotas(quota: Quota | None) -> dict[str, object]:
    if quota is None:
        return {}
    named = {
        "producerByteRate": quota.produce_bytes,
        "consumerByteRate": quota.consume_bytes,
        "requestPercentage": quota.request_percent,
    }
    return {"quotas": {name: value for name, value in named.items() if value is not None}}


def _acl(resource: tuple[str, str, bool], operations: list[str]) -> dict[str, object]:
    kind, name, is_prefix = resource
    described: dict[str, object] = {"type": STRIMZI.get(kind, kind)}
    if kind != "cluster":
        described |= {"name": name, "patternType": "prefix" if is_prefix else "literal"}
    return {"resource": described, "operations": operations}
