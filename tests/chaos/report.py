"""The suite's JSON: written after every scenario, so that what was proven stays when a later one hangs."""

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

REPORT = Path(os.environ.get("KAPPA_CHAOS_REPORT", "build/chaos.json"))


@dataclass
class Scenario:
    """One scenario's row; `events` is what was produced while it ran."""

    name: str
    kills: Counter = field(default_factory=Counter)  # by what was killed
    events: int = 0
    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    recovered_s: float | None = None  # from the last blow until everything was processed
    seconds: float = 0.0
    settled: bool = False
    notes: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.settled and self.events > 0 and not (self.lost or self.duplicated or self.wrong)

    def facts(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "passed": self.passed,
            "kills": self.kills.total(),
            "kills_by_target": dict(self.kills),
            "events": self.events,
            "lost": self.lost,
            "duplicated": self.duplicated,
            "wrong": self.wrong,
            "recovered_s": self.recovered_s and round(self.recovered_s, 1),
            "seconds": round(self.seconds, 1),
            "notes": self.notes,
        }


def save(scenarios: list[Scenario], skipped: dict[str, str], failed: bool) -> None:
    """Write the report."""
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    facts = {
        "passed": not failed and bool(scenarios) and all(scenario.passed for scenario in scenarios),
        "scenarios": [scenario.facts() for scenario in scenarios],
        "skipped": skipped,
    }
    REPORT.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
