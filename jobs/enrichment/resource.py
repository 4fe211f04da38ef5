"""What a resource's own attributes say of its machine: the workload that it belongs to, and where it runs.

The names are those of OpenTelemetry's semantic conventions, as collectors of Kubernetes, AWS and OpenStack set them. A
fact that the inventory has is the inventory's; these fill the others.
"""

from pyspark.sql import Column
from pyspark.sql import functions as F

from connectors.decoders.identity import POD_KEYS, TASK_KEYS
from connectors.decoders.otlp import attribute
from infra.contract.inventory import FACTS

# What may own a pod, the one that lives longest first: a cron job's pod names its job, too.
_OWNERS = ("cronjob", "job", "deployment", "statefulset", "daemonset", "replicaset", "replicationcontroller")
_NAMELESS = "unknown_service"  # an SDK's default begins so


def own_facts(resource: Column) -> dict[str, Column]:
    """The facts by name, of a resource's map of attributes; null where it says nothing."""
    pod, task, node = (attribute(resource, *keys) for keys in (POD_KEYS, TASK_KEYS, ("k8s.node.name",)))
    is_guest = pod.isNotNull() | task.isNotNull()
    host = attribute(resource, "host.name")
    found = {
        "type": F.when(is_guest, "virtual"),
        "site": attribute(resource, "cloud.availability_zone", "cloud.region"),
        # Of an SDK in a pod, `host.name` is the pod's own.
        "hypervisor": F.when(is_guest, F.coalesce(node, F.when(pod.isNull() | (host != pod), host))),
        "tenant": attribute(resource, "cloud.account.id"),
        # A node's attributes may name the pod of its collector's workload, which isn't the node's.
        "workload": F.when(is_guest | node.isNull(), _workload(resource, pod)),
    }
    return {name: found.get(name, F.lit(None).cast("string")) for name in FACTS}


def _workload(resource: Column, pod: Column) -> Column:
    """`kind/namespace/name`, after the cluster if it is known."""
    cluster, namespace = attribute(resource, "k8s.cluster.name"), attribute(resource, "k8s.namespace.name")

    def named(kind: Column, name: Column) -> Column:
        return F.when(name.isNotNull(), F.concat_ws("/", cluster, kind, namespace, name))

    owners = [named(F.lit(kind), attribute(resource, f"k8s.{kind}.name")) for kind in _OWNERS]
    kind = F.lower(attribute(resource, "k8s.workload.type"))
    family = attribute(resource, "aws.ecs.task.family")
    service = attribute(resource, "service.name")
    return F.coalesce(
        *owners,
        F.when(kind.isNotNull(), named(kind, attribute(resource, "k8s.workload.name"))),
        F.when(family.isNotNull(), F.concat(F.lit("ecs/"), family)),
        F.when(pod.isNotNull() & ~service.startswith(_NAMELESS), named(F.lit("service"), service)),
    )
