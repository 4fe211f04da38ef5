"""Which machine an OpenTelemetry resource is, and what tells its series apart.

The names are those of OpenTelemetry's semantic conventions, as the Collector's processors `resourcedetection` and
`k8sattributes` set them. A pod and an ECS task are machines of their own, though they may carry their host's name. The
decoders of both encodings use this table; `Identity.java` repeats it for the one in Java, and the decoders' tests
compare all of them.
"""

from typing import NamedTuple


class Identity(NamedTuple):
    """A kind of machine.

    A resource that has one of `keys` is one; its name is the first of them, after those of `within` that it has, joined
    by slashes. The attributes `series` are a part of its series' names.
    """

    keys: tuple[str, ...]
    within: tuple[str, ...]
    series: tuple[str, ...]


POD_KEYS = ("k8s.pod.name", "k8s.pod.uid")
TASK_KEYS = ("aws.ecs.task.id",)

# The best first. Of a pod or a task, `service.instance.id` and the runtime's `container.name` are made anew with each
# replacement: its containers are told apart by what stays.
IDENTITIES = (
    Identity(POD_KEYS, ("k8s.cluster.name", "k8s.namespace.name"), ("service.name", "k8s.container.name")),
    Identity(TASK_KEYS, ("aws.ecs.task.family",), ("service.name", "container.name")),
    Identity(
        (
            "k8s.node.name",
            "host.name",
            "service.instance.id",
            "host.id",
            "container.id",
            "cloud.resource_id",
        ),
        (),
        ("service.name", "service.instance.id", "container.name"),
    ),
)
