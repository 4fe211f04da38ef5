"""The suite's JSON: written after every test, so that what was shown stays when a later one fails."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import orjson

REPORT = Path("build/console.json")


class Report:
    """What was shown of each view, and what people did."""

    def __init__(self) -> None:
        self.checks: dict[str, list[str]] = defaultdict(list)  # by view
        self.p95_ms: dict[str, float] = {}
        self.actions: list[dict[str, Any]] = []
        self.axe: list[str] = []
        self.facts: dict[str, Any] = {}  # others
        self.has_passed = False  # before the suite's end nothing has

    def checked(self, view: str, what: str) -> None:
        """Something holds of a view."""
        self.checks[view].append(what)

    def acted(self, name: str, effect: str, seconds: float) -> None:
        """A person did something, whose effect was seen after so long."""
        self.actions.append({"name": name, "effect": effect, "seconds": round(seconds, 1)})

    def save(self) -> None:
        """Write what there is."""
        views = [
            {"name": name, "p95_ms": self.p95_ms.get(name), "checks": checks} for name, checks in self.checks.items()
        ]
        facts = {
            "passed": self.has_passed and bool(views) and not self.axe,
            "views": views,
            "actions": self.actions,
            "axe_violations": len(self.axe),
            **self.facts,
        }
        REPORT.parent.mkdir(parents=True, exist_ok=True)
        REPORT.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
