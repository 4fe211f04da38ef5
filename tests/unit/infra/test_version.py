"""One version: pyproject.toml has it, and whatever must repeat it says the same."""

from importlib import metadata
from pathlib import Path

import pytest
import yaml

from infra import version as module
from infra.version import version


@pytest.mark.parametrize("field", ["version", "appVersion"])
def test_the_chart_has_the_projects_version(field):
    assert yaml.safe_load(Path("charts/kappa/Chart.yaml").read_text())[field] == version()


def test_compose_runs_the_image_of_this_version():
    (image,) = [line for line in Path(".env").read_text().splitlines() if line.startswith("KAPPA_IMAGE=")]
    assert image.rpartition(":")[2] == version()


def test_make_builds_that_image():
    repository = Path(".env").read_text().partition("KAPPA_IMAGE=")[2].partition(":")[0]
    assert f"IMAGE := {repository}:$(VERSION)\n" in Path("Makefile").read_text()


def test_the_changelog_tells_of_this_version():
    assert f"\n## [{version()}]" in Path("CHANGELOG.md").read_text()


def test_without_a_checkout_it_is_that_of_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "PYPROJECT", tmp_path / "pyproject.toml")
    monkeypatch.setattr(metadata, "version", lambda name: f"{name} 9.9.9")
    assert version() == "kappa 9.9.9"
