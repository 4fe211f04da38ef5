"""Which machine a resource is: the same to every decoder of OTLP, in Java, in Python and in Spark's expressions."""

import json

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

POD = {"k8s.namespace.name": "shop", "k8s.pod.name": "cart-5d9f-x2x7", "k8s.pod.uid": "0a1b"}
SERVICE = {"service.name": "cart", "service.instance.id": "shop.cart-5d9f-x2x7.app", "container.name": "k8s_app_1"}

# attributes -> machine, series of the metric `m`
CASES = {
    "a host": ({"host.name": "vm-1", "os.type": "linux"}, "vm-1", "m"),
    "a host's service": (
        {"host.name": "vm-1", "service.name": "nginx", "container.name": "web"},
        "vm-1",
        "m{container.name=web,service.name=nginx}",
    ),
    "a pod": (POD, "shop/cart-5d9f-x2x7", "m"),
    "a pod with its node's host.name": (
        {"host.name": "node-3", "host.id": "i-1", "k8s.node.name": "node-3"} | POD,
        "shop/cart-5d9f-x2x7",
        "m",
    ),
    "a pod of a known cluster": ({"k8s.cluster.name": "prod"} | POD, "prod/shop/cart-5d9f-x2x7", "m"),
    "a pod without a namespace": ({"k8s.pod.name": "cart-1", "host.name": "node-3"}, "cart-1", "m"),
    "a pod by its uid": ({"k8s.pod.uid": "0a1b", "k8s.namespace.name": "shop"}, "shop/0a1b", "m"),
    "a pod's service": (POD | SERVICE, "shop/cart-5d9f-x2x7", "m{service.name=cart}"),
    "a pod's container": (
        POD | SERVICE | {"k8s.container.name": "app"},
        "shop/cart-5d9f-x2x7",
        "m{k8s.container.name=app,service.name=cart}",
    ),
    "a node": ({"k8s.node.name": "node-3", "host.name": "collector-abc", "k8s.cluster.name": "prod"}, "node-3", "m"),
    "a task of ECS": (
        {"aws.ecs.task.id": "0f9e", "aws.ecs.task.family": "cart", "host.name": "ip-10-0-0-1"} | SERVICE,
        "cart/0f9e",
        "m{container.name=k8s_app_1,service.name=cart}",
    ),
    "an instance of EC2": (
        {"host.name": "ip-10-0-0-1.ec2.internal", "host.id": "i-0f", "cloud.provider": "aws"},
        "ip-10-0-0-1.ec2.internal",
        "m",
    ),
    "an instance of Nova": ({"host.id": "7c0e", "host.name": "vm-9", "cloud.platform": "openstack_nova"}, "vm-9", "m"),
    "a host without a name": ({"host.id": "7c0e", "container.id": "c1"}, "7c0e", "m"),
    "an instance of a service": (
        SERVICE,
        SERVICE["service.instance.id"],
        "m{container.name=k8s_app_1,service.name=cart}",
    ),
    "a container": ({"container.id": "c1", "container.name": "web"}, "c1", "m{container.name=web}"),
    "a function": ({"cloud.resource_id": "arn:aws:lambda:eu-1:1:function:f"}, "arn:aws:lambda:eu-1:1:function:f", "m"),
    "empty names": ({"k8s.pod.name": "", "k8s.node.name": "-", "host.name": "vm-1"}, "vm-1", "m"),
    "an empty namespace": ({"k8s.pod.name": "p", "k8s.namespace.name": "", "k8s.cluster.name": "-"}, "p", "m"),
    "nothing": ({"service.name": "cart", "cloud.region": "eu-1"}, None, None),
}


def attributes(resource):
    return {"attributes": [{"key": key, "value": {"stringValue": value}} for key, value in resource.items()]}


def metrics(resource):
    points = {"name": "m", "gauge": {"dataPoints": [{"timeUnixNano": "1795245484412222354", "asDouble": 1.5}]}}
    found = {"resource": attributes(resource), "scopeMetrics": [{"metrics": [points]}]}
    return json.dumps({"resourceMetrics": [found]}).encode()


def logs(resource):
    line = {"timeUnixNano": "1795245484412222354", "body": {"stringValue": "x"}}
    found = {"resource": attributes(resource), "scopeLogs": [{"logRecords": [line]}]}
    return json.dumps({"resourceLogs": [found]}).encode()


def binary(request, value):
    return json_format.Parse(value, request()).SerializeToString()


@pytest.mark.parametrize("form", ["otlp_metrics_json", "otlp_metrics_proto", "otlp_logs_json", "otlp_logs_proto"])
def test_every_decoder_finds_the_same_machine(decode, form):
    encode = metrics if "metrics" in form else logs
    request = ExportMetricsServiceRequest if "metrics" in form else ExportLogsServiceRequest
    values = [encode(resource) for resource, _, _ in CASES.values()]
    if form.endswith("proto"):
        values = [binary(request, value) for value in values]
    rows = [row for (row,) in decode(form, values)]
    found = {case: (row.machine, row.error) for case, row in zip(CASES, rows, strict=True)}
    assert found == {case: (machine, None if machine else "no_machine") for case, (_, machine, _) in CASES.items()}
    if encode is metrics:
        series = [row.events[0].series if row.events else None for row in rows]
        assert dict(zip(CASES, series, strict=True)) == {case: series for case, (_, _, series) in CASES.items()}
