"""Fetch the JVM parts by Maven into the data folder, once per version of their poms, and build our own jars there.

`checksums.txt`, beside the poms, has the SHA-256 of each file that is fetched, as sha256sum writes it: another one is
not used. `make lock` writes it.
"""

import fcntl
import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from infra.errors import UserError
from infra.jdk import MAVEN_JAVA, find_jdk, find_maven
from infra.processes import run
from infra.settings import load_settings

Part = Literal["spark", "s3", "kafka", "elasticsearch", "flink", "streams"]

POMS = Path(__file__).parent / "jars"
_CHECKSUMS = "checksums.txt"
PARTS: tuple[Part, ...] = ("spark", "kafka", "elasticsearch")
# The Maven projects of our own classes: of a jar that goes along with Spark's, and of a plugin of Elasticsearch.
JVM = Path(__file__).parents[1] / "connectors" / "jvm"
PLUGIN = Path(__file__).parent / "local" / "plugin"
OWN: dict[Part, Path] = {"spark": JVM, "elasticsearch": PLUGIN}
GOALS: dict[Part, str] = {
    "spark": "dependency:copy-dependencies",
    "s3": "dependency:copy-dependencies",  # of Spark, for checkpoints and tables in an object store
    "kafka": "dependency:copy-dependencies",
    "elasticsearch": "dependency:copy",
    "flink": "dependency:copy-dependencies",  # of the benchmarks, as is the next
    "streams": "dependency:copy-dependencies",
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
        UserError: Maven is missing or failed, or a file isn't the one that checksums.txt says.
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
    own = [OWN[part] / "pom.xml", *sorted((OWN[part] / "src" / "main").rglob("*.*"))] if part in OWN else []
    content = b"".join(source.read_bytes() for source in (*poms, *own) if source.is_file())
    return hashlib.sha256(content + "".join(_checksums(part).values()).encode()).hexdigest()


def _replace(part: Part, folder: Path, digest: str) -> None:
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{part}-") as temporary:
        fresh, build = Path(temporary) / part, Path(temporary) / "build"
        _download(part, fresh)
        _verify(part, fresh)
        if part == "spark":
            build_jar(JVM, build).rename(fresh / "kappa.jar")
        if part == "elasticsearch":
            _install_plugin(_unpacked(next(fresh.glob("*.zip"))), build)
        (fresh / ".stamp").write_text(digest)
        if folder.exists():
            shutil.move(folder, Path(temporary) / "old")
        fresh.rename(folder)


def _download(part: Part, folder: Path) -> None:
    _maven(f"could not fetch {part}", POMS / part / "pom.xml", GOALS[part], f"-DoutputDirectory={folder}")


def _verify(part: Part, folder: Path) -> None:
    """Raises UserError if the files are others than those that checksums.txt names."""
    known = _checksums(part)
    found = {file.name: _sha256(file) for file in sorted(folder.iterdir()) if file.is_file()}
    for name in sorted(known.keys() | found.keys()):
        if known.get(name) != found.get(name):
            raise UserError(
                f"{part}/{name}: has the SHA-256 {found.get(name, 'of no file')}, {_CHECKSUMS} says "
                f"{known.get(name, 'that there is no such file')}: somebody has changed it; after a change of a "
                "version run `make lock`"
            )


def _checksums(part: Part) -> dict[str, str]:
    """The SHA-256 of each file of a part, by the file's name."""
    lines = (line.split() for line in (POMS / _CHECKSUMS).read_text().splitlines())
    return {path.partition("/")[2]: digest for digest, path in lines if path.startswith(f"{part}/")}


def _sha256(file: Path) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def lock() -> None:
    """Write checksums.txt anew, of what Maven gives now."""
    lines = []
    with tempfile.TemporaryDirectory() as temporary:
        for part in GOALS:
            folder = Path(temporary) / part
            _download(part, folder)
            lines += [f"{_sha256(file)}  {part}/{file.name}\n" for file in sorted(folder.iterdir()) if file.is_file()]
    (POMS / _CHECKSUMS).write_text("".join(lines))


def build_jar(project: Path, target: Path, *properties: str) -> Path:
    """The jar of the Maven project in `project`, built in the folder `target`; the same bytes of the same source.

    Raises:
        UserError: Maven is missing, or the source doesn't compile; says where.
    """
    # Not the phase `package`: that would fetch what the project's tests need.
    arguments = ("compiler:compile", "jar:jar", f"-Dtarget={target}", *properties)
    _maven(f"could not build the jar of {project.name}", project / "pom.xml", *arguments)
    return next(target.glob("*.jar"))


def _unpacked(archive: Path) -> Path:
    """The folder that an archive has unpacked into, beside it; the archive is gone."""
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            path = Path(packed.extract(entry, archive.parent))
            if mode := entry.external_attr >> 16:
                path.chmod(mode & 0o777)
    archive.unlink()
    return next(path for path in archive.parent.iterdir() if path.is_dir())


def _install_plugin(server: Path, build: Path) -> None:
    """Put our plugin into an Elasticsearch."""
    folder = server / "plugins" / "kappa-security-analysis"
    folder.mkdir()
    build_jar(PLUGIN, build, f"-Dlib={server / 'lib'}").rename(folder / "kappa-security-analysis.jar")
    version = server.name.removeprefix("elasticsearch-")
    properties = {
        "name": folder.name,
        "description": "What the minimal server lacks for users, roles and API keys",
        "version": version,
        "elasticsearch.version": version,
        "java.version": "17",
        "classname": "kappa.SecurityAnalysis",
    }
    lines = (f"{key}={value}\n" for key, value in properties.items())
    (folder / "plugin-descriptor.properties").write_text("".join(lines))


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
