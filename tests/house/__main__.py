"""`make house`: figures of how the project is built, into build/house.json; exit code 1 if one is not good."""

import ast
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.house.commands import shown

REPORT = Path("build/house.json")
PRODUCT = ("ops", "jobs", "connectors", "infra")
# The floor of what is in a package; the longest name that fits tells it.
FLOORS = {"infra.contract": 0, "infra": 1, "connectors": 2, "jobs.runtime": 3, "jobs": 4, "ops": 5}
# What the contract itself stands on.
BASEMENT = ("infra.errors", "infra.settings")
PLACES = 3  # a package, a row of the table, a topic
METHODS = 20
START_SECONDS = 0.5


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Name and syntax tree of each module of the product."""
    for folder in PRODUCT:
        for path in sorted(Path(folder).rglob("*.py")):
            name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
            yield name, ast.parse(path.read_text())


def floor(module: str) -> int | None:
    """The floor that a module stands on; None if it is none of ours."""
    if any(_is_in(module, name) for name in BASEMENT):
        return 0
    fitting = [name for name in FLOORS if _is_in(module, name)]
    return FLOORS[max(fitting, key=len)] if fitting else None


def _is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def imported(node: ast.AST) -> list[str]:
    """The modules that a statement imports."""
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return [alias.name for alias in node.names] if isinstance(node, ast.Import) else []


def upward_imports() -> list[str]:
    """Imports, those inside functions too, that lead to a higher floor."""
    return [
        f"{name} imports {target}"
        for name, tree in modules()
        for node in ast.walk(tree)
        for target in imported(node)
        if (above := floor(target)) is not None and above > (floor(name) or 0)
    ]


def longest_class() -> tuple[int, str]:
    """The most methods that a class has, and which."""
    return max(
        (sum(isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) for part in node.body), f"{name}.{node.name}")
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    )


def cli_start_seconds(times: int = 5) -> float:
    """How long `kappa --help` takes as a process: the best of some."""
    command = [str(Path(sys.executable).with_name("kappa")), "--help"]
    taken = []
    for _ in range(times):
        began = time.monotonic()
        subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
        taken.append(time.monotonic() - began)
    return round(min(taken), 3)


def reported(file: str, key: str) -> Any:
    """A figure from another suite's report; None if that has not run."""
    path = Path("build") / file
    return json.loads(path.read_text()).get(key) if path.is_file() else None


def main() -> int:
    """Writes the report; the exit code."""
    upward, (methods, longest) = upward_imports(), longest_class()
    commands = set(shown())
    faults = sorted(fault for command in commands if (fault := command.fault()))
    figures = {
        "places_to_touch_for_a_job": reported("your-own-job.json", "places"),
        "upward_imports": len(upward),
        "longest_class_methods": methods,
        "cli_start_s": cli_start_seconds(),
        "commands_in_docs_checked": len(commands),
        "same_bytes": reported("determinism.json", "same_values"),
    }
    good = {
        "places_to_touch_for_a_job": figures["places_to_touch_for_a_job"] in range(1, PLACES + 1),
        "upward_imports": not upward,
        "longest_class_methods": methods <= METHODS,
        "cli_start_s": figures["cli_start_s"] < START_SECONDS,
        "commands_in_docs_checked": bool(commands) and not faults,
        "same_bytes": figures["same_bytes"] is True,
    }
    REPORT.parent.mkdir(exist_ok=True)
    REPORT.write_text(json.dumps({"passed": all(good.values()), **figures}, indent=2) + "\n")
    print(REPORT.read_text(), *upward, *faults, f"the class with most methods is {longest}", sep="\n")
    print(*(f"not good: {name}" for name, is_good in good.items() if not is_good), sep="\n")
    return 0 if all(good.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
