"""Every command in README and docs is one that exists."""

import pytest

from tests.house.commands import Shown, commands_of, shown


def test_every_command_that_the_docs_show_exists():
    commands = set(shown())
    assert len(commands) > 20
    assert not [fault for command in commands if (fault := command.fault())]


@pytest.mark.parametrize(
    "right",
    [
        "kappa --version",
        "kappa run all",
        "kappa replay start --job detector --set detector.alarms_per_day=20 --as v2",
        "kappa replay status|promote|drop v2",
        "kappa host --no-journal",
        "kappa infra logs elasticsearch -n 100   # the last lines",
        ".venv/bin/kappa settings",
        "kappa ...",
        'make demo DEMO_ARGS="--once --json build/demo.json"',
        "make chart-readme chart-goldens",
    ],
)
def test_a_command_that_exists(right):
    assert Shown("page.md", right).fault() is None


@pytest.mark.parametrize(
    ("wrong", "fault"),
    [
        ("kappa simulat", "there is no command simulat"),
        ("kappa topics list --bootstrap here:1", "there is no option --bootstrap"),
        ("kappa replay status|halt v2", "there is no command status|halt"),
        ("kappa verify --wiat=5", "there is no option --wiat"),
        ("make deploy", "there is no target deploy"),
        ("make demo ARGS=1", "the Makefile has no variable ARGS"),
    ],
)
def test_a_command_that_does_not_exist(wrong, fault):
    assert Shown("page.md", wrong).fault() == f"page.md: {wrong}: {fault}"


def test_commands_are_found_in_blocks_and_in_the_text():
    page = """
Start it by `kappa infra
up`, not by `make` alone; `kappa` is one word.
```
$ make image && docker compose up
KAPPA_PROFILE=small kappa run all   # one process
kappa replay start \\
  --as v2
```
"""
    assert {shown.text for shown in commands_of(page, "page.md")} == {
        "kappa infra up",
        "make image",
        "kappa run all   # one process",
        "kappa replay start    --as v2",
    }
