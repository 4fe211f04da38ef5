"""The command line: what it lists, what it loads, and when."""

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from infra.version import version
from ops.cli import Commands, app

HEAVY = {"confluent_kafka", "elasticsearch", "numpy", "orjson", "pandas", "pyarrow", "pydantic", "pyspark", "scipy"}
LOADED = "import sys; sys.argv = ['kappa', '--help']\nfrom ops.cli import app\ntry: app()\nfinally: print(*sys.modules)"


def test_the_list_of_commands_loads_no_heavy_library():
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert "Run a job of the chain" in done.stdout
    assert not HEAVY & set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize("name", Commands.lazy)
def test_a_command_is_listed_and_has_help_of_its_own(name):
    listed = CliRunner().invoke(app, ["--help"]).output
    assert Commands.lazy[name].help in listed
    helped = CliRunner().invoke(app, [name, "--help"])
    assert helped.exit_code == 0 and f"{name} [OPTIONS]" in helped.output


def test_an_unknown_command_is_refused():
    refused = CliRunner().invoke(app, ["simulat"])
    assert refused.exit_code == 2 and "No such command 'simulat'" in refused.output


def test_the_version():
    assert CliRunner().invoke(app, ["--version"]).output == f"kappa {version()}\n"
