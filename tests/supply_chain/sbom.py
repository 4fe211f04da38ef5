"""`make sbom`: a bill of materials, in CycloneDX 1.6, of Kappa, its Python packages and its jars.

The packages are those of requirements.lock, each with the SHA-256 of every file that may be installed for it. The jars
are read: ours, those that Maven has fetched, and Spark's own, each with its SHA-256 and what else is packed into it.

    python -m tests.supply_chain.sbom FILE            writes it
    python -m tests.supply_chain.sbom --check FILE    only checks that a bill, say syft's of the image, is valid
"""

import hashlib
import json
import re
import sys
import uuid
import zipfile
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import pyspark
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from infra.jars import fetch
from infra.version import version
from tests.supply_chain.lock import LOCK, Package, packages

Component = dict[str, Any]

SPARK_JARS = Path(pyspark.__file__).parent / "jars"
# The groups that neither a jar itself nor PySpark's license says.
NO_POM = {
    "analyticsaccelerator-s3": "software.amazon.s3.analyticsaccelerator",
    "kafka-clients": "org.apache.kafka",
    "reactive-streams": "org.reactivestreams",
    "third-party-jackson-core": "software.amazon.awssdk",
}
_COORDINATES = re.compile(r"META-INF/maven/[^/]+/[^/]+/pom\.properties")


def bill(lock: Path = LOCK, jars: Iterable[Path] = (), spark_jars: Path = SPARK_JARS) -> dict[str, Any]:
    """The bill; `jars` are the folders of those that go along with Spark's own."""
    python = list(packages(lock))
    ours = [_jar(jar) for folder in jars for jar in sorted(folder.glob("*.jar"))]
    sparks = [_jar(jar) for jar in sorted(spark_jars.glob("*.jar"))]
    references = [*_dependencies(python, [one["bom-ref"] for one in ours], [one["bom-ref"] for one in sparks])]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": uuid.uuid4().urn,
        "version": 1,
        "metadata": {
            "timestamp": datetime.now(UTC).isoformat(timespec="seconds"),
            "component": {
                "type": "application",
                "bom-ref": "kappa",
                "name": "kappa",
                "version": version(),
                "purl": f"pkg:generic/kappa@{version()}",  # PyPI's `kappa` is another one
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": [*map(_package, python), *ours, *sparks],
        "dependencies": [{"ref": ref, "dependsOn": sorted(on)} for ref, on in references],
    }


def _purl(package: Package) -> str:
    return f"pkg:pypi/{package.name}@{package.version}"


def _package(package: Package) -> Component:
    component: Component = {
        "type": "library",
        "bom-ref": _purl(package),
        "name": package.name,
        "version": package.version,
        "purl": _purl(package),
        "hashes": [_hash(digest) for digest in package.hashes],
    }
    if package.marker:
        component |= {"scope": "optional", "properties": [{"name": "kappa:marker", "value": package.marker}]}
    return component


def _dependencies(python: list[Package], ours: list[str], sparks: list[str]) -> Iterator[tuple[str, set[str]]]:
    needs: dict[str, set[str]] = {"kappa": set(ours), "pyspark": set(sparks)}
    for package in python:
        for user in package.needed_by:
            needs.setdefault(user, set()).add(_purl(package))
    yield "kappa", needs["kappa"]
    yield from ((_purl(package), needs.get(package.name, set())) for package in python)
    yield from ((jar, set()) for jar in (*ours, *sparks))


def _jar(path: Path) -> Component:
    """A jar, with what else is packed into it; its version is that of its own pom, else of its name."""
    inside = sorted(set(_coordinates(path)))
    own = max(
        (one for one in inside if f"{path.stem}-".startswith(f"{one[1]}-{one[2]}-")),
        key=lambda one: len(one[1]),
        default=None,
    )
    component: Component = {
        "type": "library",
        "bom-ref": f"{path.parent.name}/{path.name}",
        "hashes": [_hash(hashlib.sha256(path.read_bytes()).hexdigest())],
    }
    if own:
        component |= _artifact(*own)
    elif path.name == "kappa.jar":
        component |= {"name": "kappa", "version": version()}
    elif named := re.fullmatch(r"(.+?)-(\d.*)", path.stem):
        group = _groups().get(named[1]) or _vendor(path)
        component |= _artifact(group, *named.groups()) if group else {"name": named[1], "version": named[2]}
    else:
        component |= {"name": path.stem}
    if packed := [{"type": "library", **_artifact(*one)} for one in inside if one != own]:
        component["components"] = packed
    return component


def _coordinates(path: Path) -> Iterator[tuple[str, str, str]]:
    """Group, artifact and version of each Maven artifact of which a jar has the classes."""
    with zipfile.ZipFile(path) as jar:
        for entry in filter(_COORDINATES.fullmatch, jar.namelist()):
            lines = jar.read(entry).decode("latin-1").splitlines()
            values = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
            if all(values.get(key) for key in ("groupId", "artifactId", "version")):
                yield tuple(values[key].strip() for key in ("groupId", "artifactId", "version"))  # type: ignore[misc]


@cache
def _groups() -> dict[str, str]:
    """The group of each artifact that PySpark's license names, and of what else doesn't say its own."""
    text = "".join(one.read_text() for one in metadata.files("pyspark") or [] if one.name == "LICENSE")
    named = re.findall(r"^([\w.-]+):([\w.-]+)\s", text, re.MULTILINE)
    return NO_POM | {artifact: group for group, artifact in named}


def _vendor(path: Path) -> str | None:
    """The group by a jar's manifest, as sbt writes it."""
    with zipfile.ZipFile(path) as jar:
        manifest = jar.read("META-INF/MANIFEST.MF").decode()
    found = re.search(r"^Implementation-Vendor-Id: ([\w.-]+)", manifest, re.MULTILINE)
    return found and found[1]


def _artifact(group: str, artifact: str, number: str) -> Component:
    purl = f"pkg:maven/{group}/{artifact}@{number}"
    return {"group": group, "name": artifact, "version": number, "purl": purl}


def _hash(digest: str) -> dict[str, str]:
    return {"alg": "SHA-256", "content": digest}


def fault(text: str) -> str | None:
    """What is not CycloneDX about a bill; None if it is valid by the schema of the version that it names."""
    try:
        schema = SchemaVersion.from_version(json.loads(text)["specVersion"])
    except (ValueError, KeyError, TypeError) as error:
        return f"no bill of CycloneDX: {error}"
    error = JsonStrictValidator(schema).validate_str(text)
    return str(error.data) if error else None


def main(arguments: list[str]) -> int:
    """The exit code."""
    path = Path(arguments[-1])
    if arguments[0] != "--check":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(bill(jars=[fetch("spark"), fetch("s3")]), indent=1) + "\n")
    if said := fault(path.read_text()):
        print(f"{path}: {said}", file=sys.stderr)
        return 1
    print(f"{path}: {len(json.loads(path.read_text())['components'])} components, valid CycloneDX")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
