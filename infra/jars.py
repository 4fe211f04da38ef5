"""Fetch the JVM parts by Maven into the data folder, once per version of their poms, and build `kappa.jar` there."""

import fcntl
import hashlib
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from infra.errors import UserError
from infra.jdk import MAVEN_JAVA, find_jdk, find_maven
from infra.processes import run
from infra.settings import load_settings

Part = Literal["spark", "kafka", "elasticsearch", "flink"]

POMS = Path(__file__).parent / "jars"
PARTS: tuple[Part, ...] = ("spark", "kafka", "elasticsearch")
# The Maven project of our own classes, whose jar goes along with Spark's.
JVM = Path(__file__).parents[1] / "connectors" / "jvm"
GOALS: dict[Part, str] = {
    "spark": "dependency:copy-dependencies",
    "kafka": "dependency:copy-dependencies",
    "elasticsearch": "dependency:unpack",
    "flink": "dependency:copy-dependencies",  # of the benchmark
}


def default_jars() -> Path:
    """The folder that every run with the same KAPPA_JARS, else KAPPA_HOME, shares."""
    settings = load_settings()
    return (settings.jars or settings.home / "jars").resolve()


def spark_jars(jars: Path | None = None) -> list[Path]:
    """What Spark needs beside its own jars, for `spark.jars`; fetched if absent."""
    return sorted(fetch("spark", jars).glob("*.jar"))


def fetch(part: Part, jars: Path | None = None) -> Path:
    """The folder with the part's files; Maven runs only if its poms or our sources have changed since.

    Raises:
        UserError: Maven is missing or failed.
    """
    folder = (jars or default_jars()) / part
    stamp = folder / ".stamp"
    digest = _digest(part)
    if _is_current(stamp, digest):  # an image's folder can't even be locked
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.with_name(f".{part}.lock")):
        if not _is_current(stamp, digest):
            _replace(part, folder, digest)
    return folder


def _is_current(stamp: Path, digest: str) -> bool:
    return stamp.is_file() and stamp.read_text() == digest


def _digest(part: Part) -> str:
    poms = [POMS / "pom.xml", POMS / part / "pom.xml"]
    own = [JVM / "pom.xml", *sorted((JVM / "src" / "main").rglob("*.java"))] if part == "spark" else []
    return hashlib.sha256(b"".join(source.read_bytes() for source in (*poms, *own))).hexdigest()


def _replace(part: Part, folder: Path, digest: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{part}-") as temporary:
        fresh = Path(temporary) / part
        _maven(f"could not fetch {part}", POMS / part / "pom.xml", GOALS[part], f"-DoutputDirectory={fresh}")
        if part == "spark":
            build_jar(JVM, Path(temporary) / "build").rename(fresh / "kappa.jar")
        (fresh / ".stamp").write_text(digest)
        if folder.exists():
            shutil.move(folder, Path(temporary) / "old")
        fresh.rename(folder)


def build_jar(project: Path, target: Path) -> Path:
    """`kappa.jar` of the Maven project in `project`, built in the folder `target`; the same bytes of the same source.

    Raises:
        UserError: Maven is missing, or the source doesn't compile; says where.
    """
    # Not the phase `package`: that would fetch what the project's tests need.
    _maven("could not build kappa.jar", project / "pom.xml", "compiler:compile", "jar:jar", f"-Dtarget={target}")
    return target / "kappa.jar"


def _maven(failure: str, pom: Path, *arguments: str) -> None:
    command: list[str | Path] = [find_maven(), "-q", "-B", "-f", pom, *arguments]
    code, output = run(command, {"JAVA_HOME": str(find_jdk(MAVEN_JAVA, "Maven"))})
    if code:
        raise UserError(f"mvn: {failure}: {_fault(output)}")


def _fault(output: str) -> str:
    """The line that says most: the compiler's first error, else Maven's first, else all that there is."""
    errors = [line.partition("[ERROR] ")[2] for line in output.splitlines() if "[ERROR] " in line]
    return next((error for error in errors if ".java:[" in error), errors[0] if errors else output.strip())


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; another process waits. The lock ends with this process at the latest."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
