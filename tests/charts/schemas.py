"""Kubernetes' JSON schemas in kubeconform's layout, from the wheel of kubernetes-validate: `make tools`."""

import json
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from tests.charts.tools import KUBERNETES, SCHEMAS

INSIDE = f"kubernetes_validate/kubernetes-json-schema/v{KUBERNETES}-local-strict/"


def _without_absolute_names(schema: Any) -> Any:
    """The schema with references that lead to the files beside it."""
    if isinstance(schema, list):
        return [_without_absolute_names(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: value for name, value in schema.items() if name != "$id" or not isinstance(value, str)}
    if isinstance(reference := kept.get("$ref"), str):
        kept["$ref"] = reference.replace("/api/_definitions.json", "_definitions.json")
    return {name: _without_absolute_names(value) for name, value in kept.items()}


def unpack(wheel: Path, folder: Path) -> int:
    """Write the schemas of the Kubernetes version that the tests render for; gives how many there are."""
    folder.mkdir(parents=True, exist_ok=True)
    with ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.startswith(INSIDE) and name.endswith(".json")]
        for name in names:
            schema = _without_absolute_names(json.loads(archive.read(name)))
            (folder / name.removeprefix(INSIDE)).write_text(json.dumps(schema))
    return len(names)


if __name__ == "__main__":
    print(f"{unpack(Path(sys.argv[1]), SCHEMAS)} schemas of Kubernetes {KUBERNETES}")
