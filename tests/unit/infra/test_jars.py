import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from infra import jars
from infra.errors import UserError

EMPTY = hashlib.sha256(b"").hexdigest()
FAKE_MAVEN = f"""#!{sys.executable}
import pathlib, sys
log = pathlib.Path(__file__).with_name("calls")
log.write_text(log.read_text() + "x" if log.exists() else "x")
target = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("-DoutputDirectory="))
pathlib.Path(target).mkdir()
(pathlib.Path(target) / "one.jar").write_text("")
if log.with_name("broken").exists():
    print("[ERROR] Could not resolve x:y:1")
    sys.exit(1)
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """A fake `mvn` that leaves one empty jar and notes that it was called; its poms are copies."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mvn").write_text(FAKE_MAVEN)
    (folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    poms = tmp_path / "poms"
    for pom in (poms / "pom.xml", poms / "kafka" / "pom.xml"):
        pom.parent.mkdir(exist_ok=True)
        pom.write_text("<project/>")
    (poms / "checksums.txt").write_text(f"{EMPTY}  kafka/one.jar\n{EMPTY}  spark/other.jar\n")
    monkeypatch.setattr(jars, "POMS", poms)
    return folder


def names(paths):
    return [path.name for path in paths]


def fetched(folder):
    return names(jars.fetch("kafka", folder).glob("*.jar"))


def test_fetches_once(maven, tmp_path):
    assert fetched(tmp_path / "jars") == fetched(tmp_path / "jars") == ["one.jar"]
    assert (maven / "calls").read_text() == "x"


@pytest.mark.parametrize("pom", ["pom.xml", "kafka/pom.xml"])
def test_fetches_again_when_a_pom_changed(maven, tmp_path, pom):
    fetched(tmp_path / "jars")
    (tmp_path / "poms" / pom).write_text("<project><!-- newer --></project>")
    assert fetched(tmp_path / "jars") == ["one.jar"]
    assert (maven / "calls").read_text() == "xx"


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (f"{'0' * 64}  kafka/one.jar", f"kafka/one.jar: has the SHA-256 {EMPTY}, checksums.txt says {'0' * 64}"),
        ("", f"kafka/one.jar: has the SHA-256 {EMPTY}, checksums.txt says that there is no such file"),
        (
            f"{EMPTY}  kafka/one.jar\n{EMPTY}  kafka/two.jar",
            f"kafka/two.jar: has the SHA-256 of no file, checksums.txt says {EMPTY}",
        ),
    ],
)
def test_a_file_that_is_another_than_it_was_is_not_used(maven, tmp_path, known, said):
    (tmp_path / "poms" / "checksums.txt").write_text(known)
    with pytest.raises(UserError, match=re.escape(said)):
        fetched(tmp_path / "jars")
    assert not (tmp_path / "jars" / "kafka").exists()


def test_the_real_checksums_name_every_part():
    named = {line.split()[1].partition("/")[0] for line in (jars.POMS / "checksums.txt").read_text().splitlines()}
    assert named == {*jars.GOALS}


def test_a_failure_leaves_the_old_files_and_names_the_cause(maven, tmp_path):
    fetched(tmp_path / "jars")
    (tmp_path / "poms" / "pom.xml").write_text("<project><!-- newer --></project>")
    (maven / "broken").touch()
    with pytest.raises(UserError, match="could not fetch kafka: Could not resolve x:y:1"):
        fetched(tmp_path / "jars")
    assert names((tmp_path / "jars" / "kafka").glob("*.jar")) == ["one.jar"]
    assert names(path for path in (tmp_path / "jars").iterdir() if path.is_dir()) == ["kafka"]


def test_two_at_once_fetch_once(maven, tmp_path):
    code = (
        "import sys, pathlib; from infra import jars; jars.POMS = pathlib.Path(sys.argv[1]);"
        "jars.fetch('kafka', pathlib.Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, tmp_path / "poms", tmp_path / "jars"]
    both = [subprocess.Popen(command) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    assert (maven / "calls").read_text() == "x"


def test_the_real_poms_agree_with_pyproject():
    """Spark and Delta run as a Python package and as jars: both must have one version."""
    root = jars.POMS.parent.parent
    pyproject = (root / "pyproject.toml").read_text()
    pom = (root / "infra" / "jars" / "pom.xml").read_text()
    for package, tag in (("pyspark", "spark"), ("delta-spark", "delta")):
        version = pyproject.split(f'"{package}==')[1].split('"')[0]
        assert f"<{tag}>{version}</{tag}>" in pom


@pytest.fixture
def project(tmp_path):
    """A copy of connectors/jvm, beside a copy of its parent."""
    shutil.copytree(jars.POMS, tmp_path / "infra" / "jars")
    return Path(shutil.copytree(jars.JVM, tmp_path / "connectors" / "jvm"))


def test_the_same_source_gives_the_same_jar(project, tmp_path):
    jar = jars.build_jar(project, tmp_path / "build")
    assert jar.read_bytes() == (jars.fetch("spark") / "kappa.jar").read_bytes()


def test_a_fault_in_the_source_is_one_line_that_says_where(project, tmp_path):
    (broken,) = project.rglob("KafkaTask.java")
    broken.write_text(broken.read_text().replace("beginTransaction", "beginTransactions"))
    with pytest.raises(
        UserError, match=r"could not build the jar of jvm: .*KafkaTask.java:\[\d+,.*beginTransactions"
    ) as error:
        jars.build_jar(project, tmp_path / "build")
    assert "\n" not in str(error.value)


def test_the_stamp_of_spark_follows_our_sources(project, monkeypatch):
    monkeypatch.setitem(jars.OWN, "spark", project)
    before = jars._digest("spark")
    (source,) = project.rglob("Scrape.java")
    source.write_text(source.read_text() + "\n")
    changed = jars._digest("spark")
    (project / "src" / "test" / "java" / "kappa" / "NewTest.java").write_text("")
    assert before != changed == jars._digest("spark")


@pytest.mark.parametrize(
    ("name", "jar"),
    [
        ("scala.library", "scala-library"),
        ("jackson", "jackson-databind"),
        ("kryo", "kryo-shaded"),
        ("slf4j", "slf4j-api"),
        ("kafka.clients", "kafka-clients"),
    ],
)
def test_our_classes_are_compiled_against_what_spark_runs_with(name, jar):
    version = (jars.POMS / "pom.xml").read_text().split(f"<{name}>")[1].split("<")[0]
    known = (*Path(pyspark.__file__).parent.glob("jars/*.jar"), *jars.fetch("spark").glob("*.jar"))
    assert f"{jar}-{version}.jar" in names(known)
