"""A suite's JSON: each proof with what was measured."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson


@dataclass(frozen=True)
class Report:
    """A file to which each proof is added when it has passed: so those before stay when a later one hangs."""

    file: Path = Path("build/replay.json")

    @property
    def proofs(self) -> dict[str, Any]:
        """Those that the file has."""
        found: dict[str, Any] = orjson.loads(self.file.read_bytes()) if self.file.exists() else {}
        return found

    def add(self, name: str, **facts: Any) -> None:
        """Note a proof, beside those that the file has already."""
        self.conclude(**{name: facts})

    def conclude(self, **facts: Any) -> None:
        """Note what all proofs together come to."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        self.file.write_bytes(orjson.dumps({**self.proofs, **facts}, option=orjson.OPT_INDENT_2))
