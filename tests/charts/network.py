"""Which connections the NetworkPolicies of rendered manifests allow, by the rules of Kubernetes.

A pod that no policy selects for a direction may do anything in it; else what any of them allows. A connection needs
both: egress of its source, ingress of its target. Names of ports are not resolved: the chart has numbers.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Endpoint:
    """A pod with its labels and those of its namespace, or with None whatever is outside the cluster."""

    labels: Labels | None
    namespace: str = "kappa"

    @property
    def namespace_labels(self) -> Labels:
        return {"kubernetes.io/metadata.name": self.namespace}


OUTSIDE = Endpoint(None, "")


class Network:
    """The policies of one namespace."""

    def __init__(self, manifests: Iterable[Mapping[str, Any]], namespace: str = "kappa") -> None:
        self.namespace = namespace
        self.policies = [one["spec"] for one in manifests if one["kind"] == "NetworkPolicy"]

    def allows(self, source: Endpoint, target: Endpoint, port: int, protocol: str = "TCP") -> bool:
        """Whether a connection from `source` to a port of `target` is allowed."""
        return self._passes("Egress", source, target, port, protocol) and self._passes(
            "Ingress", target, source, port, protocol
        )

    def _passes(self, direction: str, own: Endpoint, other: Endpoint, port: int, protocol: str) -> bool:
        policies = list(self._of(direction, own))
        return not policies or any(
            _fits(rule, direction, other, self.namespace, port, protocol)
            for policy in policies
            for rule in policy.get(direction.lower()) or []
        )

    def _of(self, direction: str, endpoint: Endpoint) -> Iterator[Mapping[str, Any]]:
        if endpoint.labels is None or endpoint.namespace != self.namespace:
            return
        for policy in self.policies:
            if direction in policy["policyTypes"] and selects(policy["podSelector"], endpoint.labels):
                yield policy


def _fits(rule: Mapping[str, Any], direction: str, other: Endpoint, namespace: str, port: int, protocol: str) -> bool:
    ports, peers = rule.get("ports"), rule.get("to" if direction == "Egress" else "from")
    is_port = not ports or any(one["port"] == port and one.get("protocol", "TCP") == protocol for one in ports)
    return is_port and (not peers or any(_is_peer(peer, other, namespace) for peer in peers))


def _is_peer(peer: Mapping[str, Any], other: Endpoint, namespace: str) -> bool:
    if "ipBlock" in peer:
        return other.labels is None
    if other.labels is None:
        return False
    if "namespaceSelector" in peer:
        is_there = selects(peer["namespaceSelector"], other.namespace_labels)
    else:
        is_there = other.namespace == namespace
    return is_there and selects(peer.get("podSelector", {}), other.labels)


def selects(selector: Mapping[str, Any], labels: Labels) -> bool:
    """Whether a label selector selects these labels; an empty one selects all."""
    equal = all(labels.get(name) == value for name, value in (selector.get("matchLabels") or {}).items())
    return equal and all(_meets(one, labels) for one in selector.get("matchExpressions") or [])


def _meets(expression: Mapping[str, Any], labels: Labels) -> bool:
    value, values = labels.get(expression["key"]), expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    raise ValueError(f"operator {expression['operator']!r}")
