"""The project's version, which is declared in pyproject.toml only."""

import tomllib
from importlib import metadata
from pathlib import Path

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


def version() -> str:
    """The version of this checkout or image, else that of the installed package."""
    if PYPROJECT.is_file():
        return str(tomllib.loads(PYPROJECT.read_text())["project"]["version"])
    return metadata.version("kappa")
