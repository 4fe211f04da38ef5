"""Gathers what the suites beyond one machine have reported into build/cluster.json; it passed once each of them has.

Each suite calls it at its end: `make test-object-store test-cluster test-executors bench-cluster`.
"""

import json
from pathlib import Path
from typing import Any

BUILD = Path("build")
REPORT = "cluster.json"
STORMS = {"object_store": "object-store.json", "standalone": "standalone.json"}  # of tests/chaos
EXECUTORS, BENCH, COST = "executors.json", "bench-cluster.json", "object-store-cost.json"


def gather(folder: Path) -> dict[str, Any]:
    """What the folder's reports say; a suite that hasn't run is null."""
    storms = {name: _storms(_read(folder / file)) for name, file in STORMS.items()}
    executors, bench, cost = (_read(folder / file) for file in (EXECUTORS, BENCH, COST))
    suites = {**storms, "kubernetes": executors}
    return {
        "passed": all(found and found["passed"] for found in suites.values()) and bench is not None,
        **suites,
        "cost_ratio": bench and bench["cost_ratio"],
        "object_store_more_s_a_batch": cost and cost["more_s"],
    }


def _storms(report: dict[str, Any] | None) -> dict[str, Any] | None:
    """The scenarios of a chaos report, added up: `wrong` are records whose content isn't what it must be."""
    if report is None:
        return None
    found = {name: sum(one[name] for one in report["scenarios"]) for name in ("kills", "lost", "duplicated", "wrong")}
    return {"passed": report["passed"], **found, "same_bytes": not found["wrong"], "scenarios": report["scenarios"]}


def _read(path: Path) -> dict[str, Any] | None:
    return dict(json.loads(path.read_text())) if path.exists() else None


if __name__ == "__main__":
    (BUILD / REPORT).write_text(json.dumps(gather(BUILD), indent=2) + "\n")
