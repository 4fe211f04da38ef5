"""Fetch the JVM parts by Maven into the data folder, once per version of their pom."""

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

Part = Literal["spark", "kafka", "elasticsearch"]

POMS = Path(__file__).parent / "jars"
PARTS: tuple[Part, ...] = ("spark", "kafka", "elasticsearch")
GOALS: dict[Part, str] = {
    "spark": "dependency:copy-dependencies",
    "kafka": "dependency:copy-dependencies",
    "elasticsearch": "dependency:unpack",
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
    poms = (POMS / "pom.xml", POMS / part / "pom.xml")
    return hashlib.sha256(b"".join(pom.read_bytes() for pom in poms)).hexdigest()


def _replace(part: Part, folder: Path, digest: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{part}-") as temporary:
        fresh = Path(temporary) / part
        _maven(part, fresh)
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


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file; another process waits. The lock ends with this process at the latest."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
