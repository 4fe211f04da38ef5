"""The suite's JSON."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

FILE = Path("build/replay.json")


def _read() -> dict[str, dict[str, Any]]:
    return orjson.loads(FILE.read_bytes()) if FILE.exists() else {}


@dataclass
class Report:
    """Each proof with what was measured, beside those that the file has already: several runs of pytest make it."""

    proofs: dict[str, dict[str, Any]] = field(default_factory=_read)

    def add(self, name: str, **facts: Any) -> None:
        """Note a proof that has passed, and save."""
        self.proofs[name] = facts
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_bytes(orjson.dumps(self.proofs, option=orjson.OPT_INDENT_2))
