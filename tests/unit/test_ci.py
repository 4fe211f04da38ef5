"""The forge's workflow runs what every submission runs."""

from pathlib import Path

import yaml


def test_the_workflow_ends_with_the_submissions_own_command():
    steps = yaml.safe_load(Path(".github/workflows/ci.yml").read_text())["jobs"]["test"]["steps"]
    assert steps[-1] == {"run": "bash .ci/run"}
    assert Path(".ci/run").read_text().endswith("\nmake test\n")


def test_the_workflow_installs_the_collectors_of_the_submission():
    steps = yaml.safe_load(Path(".github/workflows/ci.yml").read_text())["jobs"]["test"]["steps"]
    packages = Path(".ci/run").read_text().partition("packages=(")[2].partition(")")[0].split()
    installed = next(step["run"] for step in steps if "apt-get install" in step.get("run", ""))
    assert packages and installed.split()[-len(packages) :] == packages
