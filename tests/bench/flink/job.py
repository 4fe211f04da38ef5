"""Runs an SQL file in a local Flink, by a Python that has `apache-flink`, until it is killed.

Example: .venv-flink/bin/python tests/bench/flink/job.py tests/bench/flink/enrichment.sql
  --connector flink-sql-connector-kafka.jar --checkpoints build/flink topic=telemetry.otlp.metrics
  bootstrap=127.0.0.1:9092 ...
"""

import argparse
from pathlib import Path

from pyflink.table import EnvironmentSettings, TableEnvironment

SETTINGS = {
    "parallelism.default": "2",
    "pipeline.object-reuse": "true",
    "execution.checkpointing.mode": "EXACTLY_ONCE",
    "execution.checkpointing.timeout": "5 min",
    "state.backend.type": "hashmap",  # the fastest while all state fits into memory, as it does here
    "table.exec.source.idle-timeout": "2 s",  # the inventory
    "table.local-time-zone": "UTC",
    "taskmanager.memory.network.max": "256 mb",
}


def main() -> None:
    """Start the statements of a file one after the other and wait for the last."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, help="the SQL")
    parser.add_argument("--connector", type=Path, required=True, help="the Kafka connector's jar")
    parser.add_argument("--checkpoints", type=Path, required=True, help="a folder")
    parser.add_argument("--interval", default="5 s", help="between two checkpoints, and so of the commits")
    parser.add_argument("values", nargs="*", help="name=value, for the names in the file")
    arguments = parser.parse_intermixed_args()
    own = {
        "pipeline.jars": arguments.connector.resolve().as_uri(),
        "execution.checkpointing.interval": arguments.interval,
        "execution.checkpointing.dir": arguments.checkpoints.resolve().as_uri(),
    }
    table = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in (SETTINGS | own).items():
        table.get_config().set(name, value)
    text = arguments.file.read_text().format(**dict(value.split("=", 1) for value in arguments.values))
    *definitions, last = _statements(text)
    for statement in definitions:
        table.execute_sql(statement)
    result = table.execute_sql(last)
    print('"started"', flush=True)
    result.wait()


def _statements(text: str) -> list[str]:
    """The statements of a file, without its comments."""
    code = "\n".join(line for line in text.splitlines() if not line.startswith("--"))
    return [statement.strip() for statement in code.split(";\n") if statement.strip()]


if __name__ == "__main__":
    main()
