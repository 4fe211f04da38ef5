"""`make audit ADVISORIES=FOLDER`: the locked packages in which a weakness is known, by advisories in files.

The folder has advisories in OSV's form, as YAML or JSON: a checkout of github.com/pypa/advisory-database, or OSV's
archive for PyPI, unpacked. Nothing is asked of any server. Exit code 1 if a package is affected.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from infra.errors import UserError
from tests.supply_chain.lock import LOCK, packages

Advisory = dict[str, Any]


def advisories(folder: Path) -> list[Advisory]:
    """Those about Python packages that weren't withdrawn.

    Raises:
        UserError: There is none, or a file can't be read.
    """
    found = [one for one in map(_read, sorted(folder.rglob("*.*"))) if one and not one.get("withdrawn")]
    if not any(_of_python(one) for one in found):
        raise UserError(
            f"ADVISORIES={folder}: has no advisory about a Python package in OSV's form; give a checkout of "
            "github.com/pypa/advisory-database"
        )
    return found


def _read(path: Path) -> Advisory | None:
    if path.suffix not in (".json", ".yaml", ".yml"):
        return None
    try:
        read = json.loads(path.read_text()) if path.suffix == ".json" else yaml.load(path.read_text(), yaml.CSafeLoader)
    except (ValueError, yaml.YAMLError) as error:
        raise UserError(
            f"{path}: can't be read as {path.suffix[1:]}; give ADVISORIES a folder of advisories"
        ) from error
    return read if isinstance(read, dict) and "affected" in read else None


def _of_python(advisory: Advisory) -> dict[str, list[Advisory]]:
    """What an advisory says of each Python package, by its name."""
    said: dict[str, list[Advisory]] = {}
    for affected in advisory["affected"]:
        package = affected.get("package", {})
        if package.get("ecosystem") == "PyPI":
            said.setdefault(canonicalize_name(package["name"]), []).append(affected)
    return said


def affects(affected: Advisory, version: str) -> bool:
    """Whether it names the version, or one of its ranges has it."""
    if version in map(str, affected.get("versions", ())):
        return True
    ranges = (one["events"] for one in affected.get("ranges", ()) if one["type"] == "ECOSYSTEM")
    return any(_within(events, Version(version)) for events in ranges)


def _within(events: list[dict[str, Any]], version: Version) -> bool:
    inside = False
    for number, kind in sorted(_ordered(events)):
        if kind == "introduced" and number <= version:
            inside = True
        elif (kind == "fixed" and number <= version) or (kind == "last_affected" and number < version):
            inside = False
    return inside


def _ordered(events: list[dict[str, Any]]) -> Iterator[tuple[Version, str]]:
    for event in events:
        for kind, number in event.items():
            try:
                yield Version(str(number)), kind
            except InvalidVersion:  # of before PEP 440: no version of ours is near
                continue


def faults(known: list[Advisory], lock: Path = LOCK) -> list[str]:
    """A line for each advisory that affects a package of the lock."""
    locked: dict[str, list[str]] = {}
    for package in packages(lock):
        locked.setdefault(canonicalize_name(package.name), []).append(package.version)
    return sorted(
        f"{name} {version}: {advisory['id']}{_aliases(advisory)}: {_fix(said)}"
        for advisory in known
        for name, said in _of_python(advisory).items()
        for version in locked.get(name, ())
        if any(affects(one, version) for one in said)
    )


def _aliases(advisory: Advisory) -> str:
    aliases = ", ".join(advisory.get("aliases", ()))
    return f" ({aliases})" if aliases else ""


def _fix(said: list[Advisory]) -> str:
    ranges = [one for affected in said for one in affected.get("ranges", ()) if one["type"] == "ECOSYSTEM"]
    fixed = [str(event["fixed"]) for one in ranges for event in one["events"] if "fixed" in event]
    return f"fixed in {', '.join(fixed)}; make lock" if fixed else "no version is known that has it fixed"


def main(arguments: list[str]) -> int:
    """The exit code."""
    try:
        known = advisories(Path(arguments[0]))
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    found = faults(known)
    newest = max(str(one.get("modified", one.get("published", ""))) for one in known)[:10]
    print(*found, f"{len(known)} advisories, the newest of {newest}: {len(found)} affect what is locked", sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
