from pyspark.sql import functions as F
from pyspark.sql.types import MapType, StringType, StructType

from infra.contract.inventory import FACTS
from jobs.enrichment.resource import own_facts

POD = {"k8s.namespace.name": "shop", "k8s.pod.name": "cart-5d9f-x2x7"}
ON_NODE = {"type": "virtual", "hypervisor": "node-3"}
GUEST = {"type": "virtual"}
EC2 = {
    "cloud.provider": "aws",
    "cloud.platform": "aws_ec2",
    "cloud.region": "eu-west-1",
    "cloud.availability_zone": "eu-west-1b",
    "cloud.account.id": "123456789012",
    "host.id": "i-0f",
    "host.name": "ip-10-0-0-1",
}
EC2_PLACE = {"site": "eu-west-1b", "tenant": "123456789012"}


def owned(kind, name="cart"):
    return POD | {f"k8s.{kind}.name": name}


CASES = {
    "no attributes": ({}, {}),
    "a host": ({"host.name": "vm-1", "service.name": "nginx", "service.namespace": "dc1", "os.type": "linux"}, {}),
    "an instance of EC2": (EC2, EC2_PLACE),
    "a region alone": ({"cloud.region": "RegionOne", "cloud.availability_zone": ""}, {"site": "RegionOne"}),
    "an instance of Nova": (
        {
            "cloud.provider": "openstack",
            "cloud.platform": "openstack_nova",
            "cloud.account.id": "p-1",
            "cloud.availability_zone": "nova",
            "host.id": "7c0e",
            "host.name": "vm-9",
        },
        {"site": "nova", "tenant": "p-1"},
    ),
    "a pod alone": (POD, GUEST),
    "a pod and its node": (POD | {"k8s.node.name": "node-3", "host.name": "node-3.internal"}, ON_NODE),
    "a pod that carries its node's host.name": (POD | {"host.name": "node-3"}, ON_NODE),
    "a pod that carries its own host.name": (POD | {"host.name": "cart-5d9f-x2x7"}, GUEST),
    "a pod in a cloud": (POD | EC2 | {"k8s.node.name": "node-3"}, ON_NODE | EC2_PLACE),
    "a deployment's": (
        owned("deployment") | {"k8s.replicaset.name": "cart-5d9f"},
        GUEST | {"workload": "deployment/shop/cart"},
    ),
    "a stateful set's": (owned("statefulset"), GUEST | {"workload": "statefulset/shop/cart"}),
    "a daemon set's": (owned("daemonset"), GUEST | {"workload": "daemonset/shop/cart"}),
    "a job's": (owned("job"), GUEST | {"workload": "job/shop/cart"}),
    "a cron job's": (owned("cronjob") | {"k8s.job.name": "cart-29"}, GUEST | {"workload": "cronjob/shop/cart"}),
    "a replica set's": (owned("replicaset"), GUEST | {"workload": "replicaset/shop/cart"}),
    "of a known cluster": (
        owned("deployment") | {"k8s.cluster.name": "prod"},
        GUEST | {"workload": "prod/deployment/shop/cart"},
    ),
    "as the agent of CloudWatch names it": (
        POD | {"k8s.workload.type": "Deployment", "k8s.workload.name": "cart"},
        GUEST | {"workload": "deployment/shop/cart"},
    ),
    "a pod's service": (POD | {"service.name": "cart"}, GUEST | {"workload": "service/shop/cart"}),
    "a pod's nameless service": (POD | {"service.name": "unknown_service:java"}, GUEST),
    "an owner before the service": (
        owned("deployment") | {"service.name": "x"},
        GUEST | {"workload": "deployment/shop/cart"},
    ),
    "a host's service": ({"host.name": "vm-1", "service.name": "cart"}, {}),
    "a node": ({"k8s.node.name": "node-3", "host.name": "node-3", "k8s.daemonset.name": "otelcol"}, {}),
    "a pod by its host.name": (
        {"host.name": "cart-5d9f-x2x7", "k8s.deployment.name": "cart", "k8s.namespace.name": "shop"},
        {"workload": "deployment/shop/cart"},
    ),
    "a task of ECS": (
        {"aws.ecs.task.id": "0f9e", "aws.ecs.task.family": "cart", "host.name": "ip-10-0-0-1", "cloud.region": "eu-1"},
        {"type": "virtual", "hypervisor": "ip-10-0-0-1", "workload": "ecs/cart", "site": "eu-1"},
    ),
    "empty values": (owned("deployment", "-") | {"cloud.account.id": "", "k8s.node.name": "-"}, GUEST),
}


def test_a_resource_says_what_its_machine_is_and_where(spark):
    schema = StructType().add("case", "string").add("resource", MapType(StringType(), StringType()))
    rows = spark.createDataFrame([(case, resource) for case, (resource, _) in CASES.items()], schema)
    facts = F.struct(*(fact.alias(name) for name, fact in own_facts(F.col("resource")).items()))
    found = {row.case: row.facts.asDict() for row in rows.select("case", facts.alias("facts")).collect()}
    assert found == {case: dict.fromkeys(FACTS) | expected for case, (_, expected) in CASES.items()}


def test_a_record_without_resource_has_no_facts(spark):
    rows = spark.createDataFrame([(None,)], "resource map<string,string>")
    (row,) = rows.select(*(fact.alias(name) for name, fact in own_facts(F.col("resource")).items())).collect()
    assert row.asDict() == dict.fromkeys(FACTS)
