"""The state of a shard on the machine that folded it last, so that the next batch needs not ask Spark for it.

A folder beside Spark's shuffle files, which end with the executor: a file for each part, and `index`, which says of
which version of the state they are.
"""

import os
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import orjson

from jobs.runtime.packed_state import Parts

_INDEX = "index"


class _Kept(NamedTuple):
    version: str
    files: dict[str, str]  # the name of each part's file
    parts: Parts


_NOTHING = _Kept("", {}, {})
# What this worker had last, by folder.
_LAST: dict[Path, _Kept] = {}


class Nearby:
    """The state of one shard. Several workers may use it: one after the other, or at once if Spark repeats a task."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, query: str | None, topic: str, shard: int) -> "Nearby":
        """Of a shard that a query folds."""
        return cls(Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0], f"shard-{query}-{topic}-{shard}"))

    def get(self, version: str) -> Parts | None:
        """The state of that version; None if another one is here. What this worker has of it needs no reading."""
        last = _LAST.pop(self.folder, _NOTHING)
        if last.version != version:
            try:
                last = self._read(last)
            except FileNotFoundError:  # nothing is here, or another worker is just putting its own
                return None
        if last.version != version:
            return None
        _LAST[self.folder] = last
        return last.parts

    def _read(self, last: _Kept) -> _Kept:
        version, files = orjson.loads((self.folder / _INDEX).read_bytes())
        parts = {
            name: last.parts[name] if last.files.get(name) == file else (self.folder / file).read_bytes()
            for name, file in files.items()
        }
        return _Kept(version, files, parts)

    def put(self, version: str, parts: Parts) -> None:
        """Keep this version instead of the one before; a part that is the same object stays where it is."""
        last = _LAST.pop(self.folder, _NOTHING)
        self.folder.mkdir(exist_ok=True)
        token, files = uuid4().hex, {}  # of files that nobody else writes
        for number, (name, part) in enumerate(parts.items()):
            if last.parts.get(name) is part:
                files[name] = last.files[name]
                continue
            files[name] = f"{token}.{number}"
            (self.folder / files[name]).write_bytes(part)
        fresh = self.folder / token
        fresh.write_bytes(orjson.dumps([version, files]))
        fresh.replace(self.folder / _INDEX)
        _LAST[self.folder] = _Kept(version, files, parts)
        self._clean({_INDEX, *files.values()})

    def _clean(self, used: set[str]) -> None:
        for file in self.folder.iterdir():
            if file.name not in used:
                file.unlink(missing_ok=True)
