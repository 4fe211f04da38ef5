"""Fetch the JVM parts by Maven into the data folder, once per version of their pom; our own class is compiled there."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from infra.errors import UserError
from infra.jdk import MAVEN_JAVA, SPARK_JAVA, find_jdk, find_maven
from infra.processes import run
from infra.settings import load_settings

Part = Literal["compiler", "spark", "kafka", "elasticsearch", "flink"]

POMS = Path(__file__).parent / "jars"
PARTS: tuple[Part, ...] = ("spark", "kafka", "elasticsearch")
_ROOT = Path(__file__).parents[1]
# What goes along with Spark's jars.
OWN = tuple(sorted((_ROOT / "connectors" / "jvm" / "src" / "main" / "java").rglob("*.java")))
GOALS: dict[Part, str] = {
    "compiler": "dependency:copy-dependencies",
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
    """The folder with the part's files; Maven runs only if its pom changed since.

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
    sources = [POMS / "pom.xml", POMS / part / "pom.xml", *(OWN if part == "spark" else ())]
    return hashlib.sha256(b"".join(source.read_bytes() for source in sources)).hexdigest()


def _replace(part: Part, folder: Path, digest: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{part}-") as temporary:
        fresh = Path(temporary) / part
        _maven(part, fresh)
        if part == "spark":
            _compile(OWN, fresh, folder.parent)
        (fresh / ".stamp").write_text(digest)
        if folder.exists():
            shutil.move(folder, Path(temporary) / "old")
        fresh.rename(folder)


def _maven(part: Part, target: Path) -> None:
    pom = POMS / part / "pom.xml"
    command: list[str | Path] = [find_maven(), "-q", "-B", "-f", pom, GOALS[part], f"-DoutputDirectory={target}"]
    code, output = run(command, {"JAVA_HOME": str(find_jdk(MAVEN_JAVA, "Maven"))})
    if code:
        fault = next((line for line in output.splitlines() if "[ERROR]" in line), output.strip())
        raise UserError(f"mvn: could not fetch {part}: {fault.removeprefix('[ERROR] ')}")


def _compile(sources: Sequence[Path], target: Path, jars: Path) -> None:
    """Make `kappa.jar` in `target`, against the jars there and those of pyspark. Eclipse's compiler needs no JDK."""
    (compiler,) = fetch("compiler", jars).glob("ecj-*.jar")
    class_path = os.pathsep.join(str(jar) for jar in (*_pyspark().glob("jars/*.jar"), *target.glob("*.jar")))
    java = find_jdk(SPARK_JAVA, "Spark") / "bin" / "java"
    with tempfile.TemporaryDirectory(dir=jars) as classes:
        options = ["-proc:none", "-nowarn", "--release", str(SPARK_JAVA), "-cp", class_path, "-d", classes]
        code, output = run([java, "-jar", compiler, *options, *sources])
        if code:
            raise UserError(f"kappa.jar: does not compile: {output.strip()}")
        with zipfile.ZipFile(target / "kappa.jar", "w") as jar:
            for path in sorted(Path(classes).rglob("*.class")):
                # Without a time of its own: the same source gives the same jar.
                jar.writestr(zipfile.ZipInfo(str(path.relative_to(classes))), path.read_bytes())


def _pyspark() -> Path:
    spec = find_spec("pyspark")
    assert spec and spec.origin
    return Path(spec.origin).parent


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; another process waits. The lock ends with this process at the latest."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
