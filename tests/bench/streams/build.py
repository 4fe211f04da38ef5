"""Builds the Kafka Streams programs beside this file, and says how one of them is run.

The sources are in src/main/java; each program is a class of the package `kappa.bench` that has a `main`.
"""

from collections.abc import Sequence
from pathlib import Path

from infra.jars import build_jar, default_jars, fetch
from infra.jdk import KAFKA_JAVA, find_jdk
from infra.local.kafka import LOGGING

PROJECT = Path(__file__).parent
PACKAGE = "kappa.bench"


def classpath(target: Path) -> str:
    """Compile the sources into a jar in the folder `target`; gives the class path of the programs.

    Raises:
        UserError: Java or Maven is missing, or a source doesn't compile; says where.
    """
    return f"{build_jar(PROJECT, target)}:{fetch('streams', default_jars())}/*"


def command(program: str, path: str, options: Sequence[str] = ()) -> tuple[str, ...]:
    """The command that runs the class `program` with the class path `path`; `options` are those of the JVM."""
    java = find_jdk(KAFKA_JAVA, "Kafka Streams") / "bin" / "java"
    return (str(java), *options, f"-Dlog4j2.configurationFile={LOGGING}", "-cp", path, f"{PACKAGE}.{program}")
