"""requirements.lock, read."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

LOCK = Path(__file__).parents[2] / "requirements.lock"
_PACKAGE = re.compile(r"(?P<name>[\w.-]+)(\[.*\])?==(?P<version>\S+)( ; (?P<marker>.+?))?\s*\\?$")


class Package(NamedTuple):
    """A package of the lock."""

    name: str
    version: str
    marker: str  # where it is installed; "": everywhere
    hashes: list[str]  # SHA-256 of each file that may be installed
    needed_by: list[str]  # packages, and Kappa


def packages(lock: Path = LOCK) -> Iterator[Package]:
    """Each package of the lock file that uv has written."""
    for block in re.split(r"^(?=\S)", lock.read_text(), flags=re.MULTILINE):
        if found := _PACKAGE.match(block.partition("\n")[0]):
            hashes = re.findall(r"--hash=sha256:([0-9a-f]{64})", block)
            needed_by = [line.split()[0] for line in re.findall(r"# +(?:via )?(?!via$)(\S.*)$", block, re.MULTILINE)]
            yield Package(found["name"], found["version"], found["marker"] or "", hashes, needed_by)
