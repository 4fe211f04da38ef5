"""Secured servers from the command line: `kappa infra up --secured`, and what `kappa demo --secured` starts on them."""

import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

import psutil
import pytest

from connectors.kafka.offsets import Log
from infra.jars import default_jars
from infra.settings import InfraSettings
from ops.demo import demo as steps
from ops.demo.demo import Demo
from tests.acting import acting_as
from tests.integration.conftest import free_ports
from tests.waiting import until

SECONDS = 240  # for a command on a busy machine
FED = ("inventory", "telemetry.otlp.metrics")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture
def home(tmp_path):
    """The variables of an empty home, on ports of its own."""
    port = free_ports(5)
    return {
        "KAPPA_HOME": str(tmp_path),
        "KAPPA_JARS": str(default_jars()),
        "KAPPA_KAFKA_PORT": str(port),
        "KAPPA_ELASTICSEARCH_PORT": str(port + 3),
    }


def kappa(*arguments, **variables):
    return subprocess.run(
        [sys.executable, "-m", "ops.cli", *arguments],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_infra_up_secured_prints_who_the_administrator_is_and_lets_in_nobody_else(home, report):
    try:
        up = kappa("infra", "up", "--secured", **home)
        assert up.returncode == 0, up.stderr
        printed = dict(re.findall(r"^export (\w+)=(.*)$", up.stdout, re.M))
        assert printed.keys() == {"KAPPA_KAFKA_BOOTSTRAP", "KAPPA_ELASTICSEARCH_URL", "KAPPA_SECRETS"}
        assert printed["KAPPA_ELASTICSEARCH_URL"].startswith("https://")

        nobody = kappa("topics", "apply", **home, KAPPA_KAFKA_BOOTSTRAP=printed["KAPPA_KAFKA_BOOTSTRAP"])
        assert nobody.returncode == 2
        assert nobody.stderr.splitlines()[-1].endswith("expects SASL_SSL or SSL")

        assert kappa("topics", "apply", **home, **printed).returncode == 0
        keys = kappa("acl", "keys", f"{home['KAPPA_HOME']}/security/users", **home, **printed)
        assert "kappa-operator: key " in keys.stdout
        report.client("topics apply", secured_broker=True)
        report.client("acl keys", elasticsearch=True)
    finally:
        kappa("infra", "down", **home)


@pytest.fixture
def demo(tmp_path):
    """A secured demo; within, this process is who the demo is."""
    port = free_ports(6)
    infra = InfraSettings(home=tmp_path, kafka_port=port, elasticsearch_port=port + 3)
    with acting_as(None), steps.running(Demo.at(infra, 0, port + 5, secured=True)) as found:
        yield found


def test_the_demo_on_secured_servers_is_fed_and_shown_by_users_who_may_do_no_more(demo, report):
    steps.start_servers(demo, lambda _: None)
    assert os.environ["KAPPA_SECRETS"] == str(demo.servers.identities.user("kappa-operator"))
    steps.start_console(demo)
    steps.start_feeds(demo)

    def is_fed():
        steps.check_processes(demo)
        return all(sum(Log(demo.settings.kafka_bootstrap).ends([topic]).values()) for topic in FED)

    until(lambda: steps.console_answers(demo), SECONDS, "the console doesn't answer")
    until(is_fed, SECONDS, "the feeds send nothing")
    secrets = {name: psutil.Process(one.pid).environ()["KAPPA_SECRETS"] for name, one in demo.processes.items()}
    users = {name: Path(path).name for name, path in secrets.items()}
    assert users == {"console": "kappa-operator", "simulate": "kappa-simulator", "host": "kappa-host"}
    # With the operator's rights it reads the one server and the other.
    assert "promoted" in page(demo, "generations")
    assert "Elasticsearch:" not in page(demo, "incidents")
    for name in ("simulate", "host"):
        report.client(name, secured_broker=True)
    report.client("console", secured_broker=True, elasticsearch=True)


def page(demo, path):
    with urllib.request.urlopen(f"{demo.console}/{path}", timeout=60) as answer:
        return answer.read().decode()
