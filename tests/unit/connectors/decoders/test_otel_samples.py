"""What the real OpenTelemetry Collector (v0.145.0) sends of pods and clouds: samples/README.md."""

from pathlib import Path

import pytest
from pyspark.sql import functions as F

from connectors.decoders.registry import decoder_of
from infra.contract.inventory import FACTS
from jobs.enrichment.resource import own_facts
from tests.unit.connectors.decoders.conftest import KAFKA, RECEIVED

SAMPLES = Path(__file__).parent / "samples"
EC2 = {"site": "eu-west-1b", "tenant": "123456789012"}
ON_NODE = {"type": "virtual", "hypervisor": "node-3"}
EXPECTED = {
    "pod": ("prod/shop/cart-5d9f8b7c6d-x2x7k", ON_NODE | {"workload": "prod/deployment/shop/cart"}),
    "pod-ec2": ("shop/cart-5d9f8b7c6d-x2x7k", ON_NODE | EC2 | {"workload": "deployment/shop/cart"}),
    "ec2": ("ip-10-0-0-1.eu-west-1.compute.internal", EC2),
    "ecs": ("cart/0f9e8d7c6b5a", EC2 | {"type": "virtual", "workload": "ecs/cart"}),
    "nova": ("vm-9", {"site": "az-2", "tenant": "3f2a"}),
}


@pytest.mark.parametrize("signal", ["metrics", "logs"])
@pytest.mark.parametrize(("ending", "encoding"), [("json", "json"), ("bin", "proto")])
def test_a_real_resource_names_machine_workload_and_place(spark, signal, ending, encoding):
    values = [(SAMPLES / f"{case}.{signal}.{ending}").read_bytes() for case in EXPECTED]
    kafka = [(None, value, "telemetry", 0, offset, RECEIVED) for offset, value in enumerate(values)]
    decoded = decoder_of(f"otlp_{signal}_{encoding}").decode(spark.createDataFrame(kafka, KAFKA))
    facts = F.struct(*(fact.alias(name) for name, fact in own_facts(F.col("resource")).items()))
    rows = decoded.select("offset", "machine", "error", facts.alias("facts")).orderBy("offset").collect()
    found = {case: (row.machine, row.facts.asDict()) for case, row in zip(EXPECTED, rows, strict=True)}
    assert found == {case: (machine, dict.fromkeys(FACTS) | own) for case, (machine, own) in EXPECTED.items()}
    assert {row.error for row in rows} == {None}
