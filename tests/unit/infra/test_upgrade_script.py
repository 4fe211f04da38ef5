"""infra/docker/upgrade, with a `docker` that notes what it is asked and answers as the test says."""

import os
import subprocess

import pytest

DOCKER = """#!/bin/bash
echo "${KAPPA_IMAGE:-} $*" >> "$CALLS"
case "$*" in
  ps*service*) printf '%b' "$JOBS" ;;
  ps*Image*) printf '%b' "$IMAGES" ;;
  "image inspect kappa:gone"*) exit 1 ;;
  "pull -q kappa:gone") exit 1 ;;
  *"upgrade watch"*) echo "$WATCHED"; exit "$READY" ;;
  *"upgrade back"*) echo "the former image goes on"; exit "${BACK:-0}" ;;
  *"upgrade begin"*) exit "${BEGIN:-0}" ;;
  *"replay start"*) echo "echo started >> $CALLS" ;;
  *"replay promote"*) exit "$READY" ;;
  "compose up -d detector statistics") exit "${UP:-0}" ;;
esac
"""


@pytest.fixture
def upgrade(tmp_path):
    """Runs the script; gives its exit code, its last line (of stderr if it refuses), and what `docker` was asked."""
    program, calls = tmp_path / "docker", tmp_path / "calls"
    program.write_text(DOCKER)
    program.chmod(0o755)

    def run(*arguments, **given):
        calls.write_text("")
        answers = {
            "PATH": f"{tmp_path}:{os.environ['PATH']}", "CALLS": str(calls), "JOBS": "statistics\\ndetector\\n",
            "IMAGES": "kappa:1\\nkappa:1\\n", "WATCHED": "ready after 90 s", "READY": "0",
            "COMPOSE_PROJECT_NAME": "lab",
        }  # fmt: skip
        environment = {**answers, **{name: str(value) for name, value in given.items()}}
        done = subprocess.run(
            ["infra/docker/upgrade", *arguments], env=environment, capture_output=True, text=True, check=False
        )
        lines = (done.stderr if done.returncode == 2 else done.stdout).splitlines()
        return done.returncode, lines[-1] if lines else "", calls.read_text().splitlines()

    return run


TOOLBOX = "kappa:1 compose run --rm -T kappa"


def test_a_good_image_stays(upgrade):
    code, line, asked = upgrade("kappa:2", "--mode", "savepoint", "--deadline", "5m")
    assert (code, line) == (0, "kappa:2: ready after 90 s; write KAPPA_IMAGE=kappa:2 into .env, so that it stays")
    assert "label=com.docker.compose.project=lab" in asked[0]
    assert asked[3:] == [
        f"{TOOLBOX} upgrade begin --mode savepoint",
        "kappa:2 compose up -d detector statistics",
        f"{TOOLBOX} upgrade watch --deadline 5m",
    ]


def test_one_that_is_not_ready_is_taken_back_and_one_line_says_why(upgrade):
    why = "not ready after 60 s: detector: was started 4 times"
    code, line, asked = upgrade("kappa:2", WATCHED=why, READY=1)
    assert (code, line) == (1, f"kappa:2: {why}; back to kappa:1: the former image goes on")
    assert asked[-3:] == [
        "kappa:2 compose stop detector statistics",
        f"{TOOLBOX} upgrade back",
        "kappa:1 compose up -d --no-deps detector statistics",
    ]


def test_one_whose_services_do_not_start_is_taken_back_unwatched(upgrade):
    code, line, asked = upgrade("kappa:2", UP=1)
    assert code == 1 and line.startswith("kappa:2: its services can't be started; back to kappa:1")
    assert not [one for one in asked if "watch" in one]


def test_the_former_image_starts_even_where_the_savepoint_does_not_fit(upgrade):
    code, line, asked = upgrade("kappa:2", READY=1, BACK=2)
    assert code == 1 and "the savepoint could not be put back" in line
    assert asked[-1] == "kappa:1 compose up -d --no-deps detector statistics"


def test_nothing_is_changed_where_the_beginning_fails(upgrade):
    code, _, asked = upgrade("kappa:2", BEGIN=2)
    assert code == 2 and "upgrade begin" in asked[-1]


def test_a_generation_is_replayed_beside_and_promoted_within_the_tolerance(upgrade):
    arguments = ("kappa:2", "--mode", "generation", "--as", "v2", "--job", "detector", "--tolerance", "0.01")
    code, _, asked = upgrade(*arguments, "--deadline", "2h")
    assert code == 0 and asked[3:] == [
        f"{TOOLBOX} replay start --job detector --image kappa:2 --as v2",
        "started",
        f"{TOOLBOX} replay promote v2 --tolerance 0.01 --deadline 2h",
    ]
    assert upgrade(*arguments, READY=1)[0] == 1


@pytest.mark.parametrize(
    ("arguments", "answers", "line"),
    [
        ((), {}, "upgrade: IMAGE: is missing, e.g. infra/docker/upgrade ghcr.io/kappa/kappa:next"),
        (("a", "b"), {}, "upgrade: b: give one image"),
        (("a", "--mode", "green"), {}, "upgrade: --mode green: use checkpoint, savepoint or generation"),
        (("a", "--deadline", "soon"), {}, "upgrade: --deadline soon: write a whole number and a unit, e.g. 10m"),
        (("a", "--deadline"), {}, "upgrade: --deadline: lacks a value; see --help"),
        (("a", "--moed", "x"), {}, "upgrade: --moed: there is no such option; see --help"),
        (("a", "--mode", "generation"), {}, "upgrade: --as: is missing; the name of the new generation, e.g. v2"),
        (("a",), {"JOBS": ""}, "upgrade: COMPOSE_PROJECT_NAME=lab: no job runs; docker compose up -d"),
        (("kappa:gone",), {}, "upgrade: IMAGE=kappa:gone: is not there"),
        (
            ("a",),
            {"IMAGES": "kappa:1\\nkappa:2\\n"},
            "upgrade: the jobs run kappa:1 kappa:2: give all of them one image first; docker compose up -d",
        ),
    ],
)
def test_wrong_input_is_refused_with_its_name(upgrade, arguments, answers, line):
    code, said, asked = upgrade(*arguments, **answers)
    assert (code, said) == (2, line)
    assert not [one for one in asked if "compose" in one.split()]


def test_the_help_is_the_head_of_the_script(upgrade):
    done = subprocess.run(["infra/docker/upgrade", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("infra/docker/upgrade IMAGE [--mode checkpoint|savepoint|generation]")
