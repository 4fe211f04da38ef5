"""Who each process of a secured demo is to its servers."""

import subprocess
from pathlib import Path

import pytest

from infra.settings import InfraSettings
from ops.demo import demo as steps
from ops.demo.demo import Demo


@pytest.fixture
def started(monkeypatch):
    """By the name of its log, the environment of each process that the demo would have started."""
    found = {}

    class Process:
        def __init__(self, command, env, stdout, **_):
            found[Path(stdout.name).stem] = env

    monkeypatch.setattr(subprocess, "Popen", Process)
    return found


def start_everything(home, *, secured):
    demo = Demo.at(InfraSettings(home=home), 0, 0, secured=secured)
    demo.log_of("jobs").parent.mkdir(parents=True)
    for step in (steps.start_console, steps.start_feeds, steps.start_chain, steps.keep_feeding):
        step(demo)
    return demo


def test_each_process_of_a_secured_demo_is_a_user_of_its_own_and_none_the_administrator(started, tmp_path, monkeypatch):
    (tmp_path / "admin").mkdir()
    monkeypatch.setenv("KAPPA_SECRETS", str(tmp_path / "admin"))  # of the demo itself while it makes the users
    users = start_everything(tmp_path, secured=True).home / "security" / "users"
    own = {name: environment.get("KAPPA_SECRETS") for name, environment in started.items()}
    assert own == {
        "console": f"{users}/kappa-operator",
        "simulate": f"{users}/kappa-simulator",
        "simulate-on": f"{users}/kappa-simulator",
        "host": f"{users}/kappa-host",
        "jobs": f"{users}/kappa-jobs",
    }


def test_a_demo_whose_servers_ask_nobody_has_no_users(started, tmp_path):
    start_everything(tmp_path, secured=False)
    assert len(started) == 5
    assert not [name for name, found in started.items() if "KAPPA_SECRETS" in found]
