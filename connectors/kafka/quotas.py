"""What users of Kafka may ask of each broker, by Java's client: librdkafka can't say it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pyspark

from connectors.kafka.access import no_right, reach
from connectors.kafka.security import load_security
from infra.contract.topics import Quota
from infra.errors import UserError
from infra.jars import spark_jars
from infra.jdk import SPARK_JAVA, find_jdk
from infra.processes import run_apart

Numbers = dict[str, float]  # by Kafka's name of a quota


def apply_quotas(bootstrap: str, quotas: Mapping[str, Quota]) -> dict[str, Numbers]:
    """Give these users exactly these quotas; returns what each had before.

    Raises UserError if no broker lets us in, or the right to alter the cluster's settings is missing.
    """
    reach(bootstrap)
    wanted = {user: quota.in_kafkas_names() for user, quota in quotas.items()}
    connection = {"bootstrap.servers": bootstrap, **load_security().java()}
    given = json.dumps({"connection": connection, "quotas": wanted})
    code, said, faults = run_apart(_command(), given)
    if code:
        if "AuthorizationException" in faults:
            raise UserError(no_right("the cluster", " (AlterConfigs)"))
        fault = next((line for line in faults.splitlines() if re.search("Exception|Error", line)), faults.strip())
        raise UserError(f"quotas: can't be applied: {fault[:300]}")
    found: dict[str, Numbers] = json.loads(said)
    return found


def _command() -> list[str | Path]:
    jars = [*spark_jars(), Path(pyspark.__file__).parent / "jars" / "*"]
    logs = "-Dorg.apache.logging.log4j.level=ERROR"
    java = find_jdk(SPARK_JAVA, "Kafka's client") / "bin" / "java"
    return [java, "-Xmx128m", logs, "-cp", ":".join(map(str, jars)), "kappa.Quotas"]
