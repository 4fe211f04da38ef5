import pytest

from infra.errors import UserError
from infra.jdk import find_jdk, find_maven


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No Java that this machine has may show."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("KAPPA_JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))


def make_jdk(home, version=None, says=""):
    """A JDK with a release file, or one that answers `java -version` with `says`."""
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho '{says}' >&2\n")
    java.chmod(0o755)
    if version:
        (home / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{version}"\n')
    return home


def find(minimum, tmp_path):
    return find_jdk(minimum, "Spark", (f"{tmp_path}/jvm/*",))


def test_takes_the_oldest_that_will_do(tmp_path):
    for version in ("25", "17.0.15", "11.0.2", "21.0.1"):
        make_jdk(tmp_path / "jvm" / f"jdk-{version}", version)
    assert find(17, tmp_path).name == "jdk-17.0.15"
    assert find(18, tmp_path).name == "jdk-21.0.1"


def test_the_users_choice_comes_first(tmp_path, monkeypatch):
    make_jdk(tmp_path / "jvm" / "a", "17")
    monkeypatch.setenv("JAVA_HOME", str(make_jdk(tmp_path / "java", "21")))
    assert find(17, tmp_path) == tmp_path / "java"
    monkeypatch.setenv("KAPPA_JAVA_HOME", str(make_jdk(tmp_path / "kappa", "22")))
    assert find(17, tmp_path) == tmp_path / "kappa"


def test_a_choice_that_is_too_old_is_passed_over(tmp_path, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", str(make_jdk(tmp_path / "old", "1.8.0_392")))
    newer = make_jdk(tmp_path / "jvm" / "a", "17.0.1")
    assert find(17, tmp_path) == newer


def test_java_on_path_is_resolved_through_links(tmp_path, monkeypatch):
    home = make_jdk(tmp_path / "real", "21")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert find(21, tmp_path) == home


def test_asks_java_where_there_is_no_release_file(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    monkeypatch.setattr("infra.jdk._chosen", lambda: iter(()))
    home = make_jdk(tmp_path / "jvm" / "a", says='openjdk version "21.0.2" 2024-01-16')
    assert find(21, tmp_path) == home


def test_says_what_to_install(tmp_path):
    make_jdk(tmp_path / "jvm" / "a", "11")
    with pytest.raises(UserError, match=r"Spark needs Java 17 or newer.*install one.*openjdk-17") as caught:
        find(17, tmp_path)
    assert "\n" not in str(caught.value)


def test_maven_missing_is_said_in_one_line():
    with pytest.raises(UserError, match=r"mvn: Maven is needed.*apt install maven"):
        find_maven()
