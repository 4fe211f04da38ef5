"""The suite's JSON."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

FILE = Path("build/replay.json")


@dataclass
class Report:
    """Each proof with what was measured."""

    proofs: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, name: str, **facts: Any) -> None:
        """Note a proof that has passed, and save."""
        self.proofs[name] = facts
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_bytes(orjson.dumps(self.proofs, option=orjson.OPT_INDENT_2))
