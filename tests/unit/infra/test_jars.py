import os
import subprocess
import sys

import pytest

from infra import jars
from infra.errors import UserError

FAKE_MAVEN = f"""#!{sys.executable}
import pathlib, sys
log = pathlib.Path(__file__).with_name("calls")
log.write_text(log.read_text() + "x" if log.exists() else "x")
target = next(a.split("=", 1)[1] for a in sys.argv if a.startswith("-DoutputDirectory="))
pathlib.Path(target).mkdir()
(pathlib.Path(target) / f"call-{{len(log.read_text())}}.jar").write_text("")
if log.with_name("broken").exists():
    print("[ERROR] Could not resolve x:y:1")
    sys.exit(1)
"""


@pytest.fixture
def maven(tmp_path, monkeypatch):
    """A fake `mvn` that leaves one jar, named by the number of calls so far; its poms are copies."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "mvn").write_text(FAKE_MAVEN)
    (folder / "mvn").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    poms = tmp_path / "poms"
    for pom in (poms / "pom.xml", poms / "kafka" / "pom.xml"):
        pom.parent.mkdir(exist_ok=True)
        pom.write_text("<project/>")
    monkeypatch.setattr(jars, "POMS", poms)
    return folder


def names(paths):
    return [path.name for path in paths]


def fetched(folder):
    return names(jars.fetch("kafka", folder).glob("*.jar"))


def test_fetches_once(maven, tmp_path):
    assert fetched(tmp_path / "jars") == ["call-1.jar"]
    assert fetched(tmp_path / "jars") == ["call-1.jar"]


@pytest.mark.parametrize("pom", ["pom.xml", "kafka/pom.xml"])
def test_fetches_again_when_a_pom_changed(maven, tmp_path, pom):
    fetched(tmp_path / "jars")
    (tmp_path / "poms" / pom).write_text("<project><!-- newer --></project>")
    assert fetched(tmp_path / "jars") == ["call-2.jar"]


def test_a_failure_leaves_the_old_files_and_names_the_cause(maven, tmp_path):
    fetched(tmp_path / "jars")
    (tmp_path / "poms" / "pom.xml").write_text("<project><!-- newer --></project>")
    (maven / "broken").touch()
    with pytest.raises(UserError, match="could not fetch kafka: Could not resolve x:y:1"):
        fetched(tmp_path / "jars")
    assert names((tmp_path / "jars" / "kafka").glob("*.jar")) == ["call-1.jar"]
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


def test_the_same_source_gives_the_same_jar_and_a_fault_in_it_is_told(tmp_path, monkeypatch):
    spark = [*jars.fetch("spark").glob("*.jar")]
    made = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        for jar in spark:
            if jar.name != "kappa.jar":
                (folder / jar.name).symlink_to(jar)
        jars._compile(jars.OWN, folder, jars.default_jars())
        made.append((folder / "kappa.jar").read_bytes())
    assert made[0] == made[1] == (jars.fetch("spark") / "kappa.jar").read_bytes()

    broken = tmp_path / "KafkaTask.java"
    (sink,) = (source for source in jars.OWN if source.name == broken.name)
    broken.write_text(sink.read_text().replace("beginTransaction", "beginTransactions"))
    with pytest.raises(UserError, match=r"kappa.jar: does not compile: (?s:.)*KafkaTask.java(?s:.)*beginTransactions"):
        jars._compile([broken], tmp_path / "one", jars.default_jars())
