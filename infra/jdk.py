"""Finds Maven and a Java that is new enough: Spark and Kafka need 17, Elasticsearch 21."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from infra.errors import UserError

MAVEN_JAVA = 17
KAFKA_JAVA = 17
SPARK_JAVA = 17
ELASTICSEARCH_JAVA = 21

JVM_FOLDERS = (
    "/usr/lib/jvm/*",
    "/usr/java/*",
    "/opt/java/*",
    "/opt/jdk*",
    "/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "/opt/homebrew/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "/usr/local/opt/openjdk*/libexec/openjdk.jdk/Contents/Home",
    "~/Library/Java/JavaVirtualMachines/*/Contents/Home",
    "~/.sdkman/candidates/java/*",
    "~/.jdks/*",
)


def find_jdk(minimum: int, purpose: str, folders: tuple[str, ...] = JVM_FOLDERS) -> Path:
    """The home of a Java of at least `minimum`: the user's choice, else the oldest one in `folders` that suffices.

    The user's choice is KAPPA_JAVA_HOME, JAVA_HOME or the `java` on PATH, in this order.

    Raises:
        UserError: there is none.
    """
    for home in _chosen():
        if (_version(home) or 0) >= minimum:
            return home
    installed = [(version, home) for home in _installed(folders) if (version := _version(home)) and version >= minimum]
    if installed:
        return min(installed)[1]
    raise UserError(f"java: {purpose} needs Java {minimum} or newer and none was found; {_advice(minimum)}")


def find_maven() -> str:
    """The path of Maven's command.

    Raises:
        UserError: it is not on PATH.
    """
    if maven := shutil.which("mvn"):
        return maven
    raise UserError("mvn: Maven is needed and is not on PATH; install it (e.g. apt install maven, brew install maven)")


def _advice(minimum: int) -> str:
    return f"install one (e.g. apt install openjdk-{minimum}-jre-headless, brew install openjdk) or set KAPPA_JAVA_HOME"


def _chosen() -> Iterator[Path]:
    for variable in ("KAPPA_JAVA_HOME", "JAVA_HOME"):
        if value := os.environ.get(variable):
            yield Path(value)
    if java := shutil.which("java"):
        yield Path(java).resolve().parent.parent


def _installed(folders: tuple[str, ...]) -> Iterator[Path]:
    for pattern in folders:
        path = Path(pattern).expanduser()
        yield from Path(path.anchor).glob(str(path.relative_to(path.anchor)))


def _version(home: Path) -> int | None:
    java = home / "bin" / "java"
    if not os.access(java, os.X_OK):
        return None
    release = home / "release"
    text = release.read_text(errors="replace") if release.is_file() else _ask(java)
    return _major(text)


def _ask(java: Path) -> str:
    try:
        return subprocess.run([java, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _major(text: str) -> int | None:
    """The major version in a `release` file or the output of `java -version`: 17 for "17.0.15", 8 for "1.8.0_392"."""
    found = re.search(r'(?:JAVA_VERSION=|version )"(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None
