"""infra/docker/pin, with a `docker` that knows a digest for each tag, on copies of it and of the files it writes."""

import os
import shutil
import subprocess

import pytest

FILES = (".env", "infra/docker/Dockerfile", "charts/kappa/values.yaml")
# The digest is of the name, so that each image has another one; a name in $GONE has none.
DOCKER = """#!/bin/bash
[ "$1 $2 $3 $4" = "buildx imagetools inspect --format" ] || exit 9
[ "$6" != "${GONE:-}" ] || { echo "ERROR: not found" >&2; exit 1; }
[ -z "${ANSWER:-}" ] || { echo "$ANSWER"; exit; }
echo "sha256:$(echo "$6 ${MOVED:-}" | sha256sum | cut -c1-64)"
"""


@pytest.fixture
def pin(tmp_path):
    """Runs the script on the copies; gives its exit code and what it said."""
    program = tmp_path / "docker"
    program.write_text(DOCKER)
    program.chmod(0o755)
    for file in (*FILES, "infra/docker/pin"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, tmp_path / file)

    def run(*arguments, **given):
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **given}
        command = [tmp_path / "infra/docker/pin", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    return run


def _texts(folder):
    return {file: (folder / file).read_text() for file in FILES}


def test_each_image_gets_its_digest_and_nothing_else_changes(pin, tmp_path):
    before = _texts(tmp_path)
    code, said = pin()
    assert code == 0
    after = _texts(tmp_path)
    names = {line.partition("@")[0] for line in said.splitlines()}
    assert {name.rpartition(":")[0].rpartition("/")[2] for name in names} == {
        "kafka", "elasticsearch", "kibana", "prometheus", "alertmanager", "grafana",
        "opentelemetry-collector-contrib", "python",
    }  # fmt: skip
    restored = after
    for line in said.splitlines():
        assert any(line in text for text in after.values())
        restored = {file: text.replace(line, line.partition("@")[0]) for file, text in restored.items()}
    assert restored == before
    assert "@" not in next(line for line in after[".env"].splitlines() if line.startswith("KAPPA_IMAGE="))


def test_a_second_time_there_is_nothing_to_do(pin, tmp_path):
    pin()
    before = _texts(tmp_path)
    assert pin() == pin("--check") == (0, "")
    assert _texts(tmp_path) == before


def test_a_check_finds_what_has_no_digest_and_changes_nothing(pin, tmp_path):
    before = _texts(tmp_path)
    code, said = pin("--check")
    assert code == 1 and "it has no digest; now sha256:" in said
    assert _texts(tmp_path) == before


def test_a_tag_that_moved_is_found_and_pinned_anew(pin, tmp_path):
    pin()
    code, said = pin("--check", MOVED="1")
    assert code == 1 and "apache/kafka:" in said and "the tag has moved from sha256:" in said
    assert pin(MOVED="1")[0] == 0
    assert pin("--check", MOVED="1") == (0, "")


def test_if_one_image_has_no_digest_none_is_written(pin, tmp_path):
    before = _texts(tmp_path)
    image = next(line for line in before[".env"].splitlines() if line.startswith("GRAFANA")).partition("=")[2]
    code, said = pin(GONE=image)
    assert code == 2 and said.splitlines()[-1].startswith(f"pin: {image}: docker says no digest")
    assert _texts(tmp_path) == before


def test_wrong_input_is_refused_with_its_name(pin, tmp_path):
    assert pin("--chekc") == (2, "pin: --chekc: there is no such option; see --help\n")
    assert "docker says '<nil>', which is no digest" in pin(ANSWER="<nil>")[1]
    (tmp_path / ".env").write_text(f"KAFKA_IMAGE=apache/kafka@sha256:{'0' * 64}\n")
    code, said = pin()
    assert code == 2 and "has no tag whose digest could be looked up" in said


def test_the_help_is_the_head_of_the_script(pin):
    assert pin("--help")[1].startswith("infra/docker/pin  ")
