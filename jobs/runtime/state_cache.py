"""The state of shards on the machine that folded them last, so that the next batch needs not ask Spark for it.

Two layers: a worker holds the states that it opened, ready to be fed; and their parts are in files, for whichever
worker of this machine folds the shard next. The files are beside Spark's shuffle files, which end with the executor: a
folder a shard, in it a file for each part, and `index`, which says of which version of the state they are.
"""

import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import orjson

from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import ShardState

_INDEX = "index"


class Place(NamedTuple):
    """Whose state it is: that of a query, for a shard of a topic."""

    query: str | None
    topic: str
    shard: int

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"shard-{self.query}-{self.topic}-{self.shard}"


class Cached(NamedTuple):
    """A state as parts, and opened if this worker was the last that dumped it."""

    parts: Parts
    state: ShardState | None = None


class _Held(NamedTuple):
    version: str
    files: dict[str, str]  # the name of each part's file
    cached: Cached


_NOTHING = _Held("", {}, Cached({}))


class StateCache:
    """The states that one worker holds, above the files of all workers of a machine.

    Several workers may use the files: one after the other, or at once if Spark repeats a task.
    """

    def __init__(self, root: Path) -> None:
        """`root` is the folder of the shards' folders."""
        self.root = root
        self._held: dict[Place, _Held] = {}

    def take(self, place: Place, version: str) -> Cached | None:
        """The state of that version; None if another one is here, or none. The opened state leaves the cache."""
        held = self._held.pop(place, _NOTHING)
        if held.version != version:
            try:
                held = self._read(place, held)
            except FileNotFoundError:  # nothing is here, or another worker is just putting its own
                return None
        if held.version != version:
            return None
        self._held[place] = held._replace(cached=Cached(held.cached.parts))
        return held.cached

    def _read(self, place: Place, held: _Held) -> _Held:
        folder = self.root / place.folder
        version, files = read_index(folder)
        parts = {
            name: held.cached.parts[name] if held.files.get(name) == file else (folder / file).read_bytes()
            for name, file in files.items()
        }
        return _Held(version, files, Cached(parts))

    def put(self, place: Place, version: str, cached: Cached) -> None:
        """Keep this version instead of the one before; a part that is the same object stays where it is."""
        held = self._held.pop(place, _NOTHING)
        folder = self.root / place.folder
        folder.mkdir(exist_ok=True)
        token, files = uuid4().hex, {}  # of files that nobody else writes
        for number, (name, part) in enumerate(cached.parts.items()):
            if held.cached.parts.get(name) is part:
                files[name] = held.files[name]
                continue
            files[name] = f"{token}.{number}"
            (folder / files[name]).write_bytes(part)
        fresh = folder / token
        fresh.write_bytes(orjson.dumps([version, files]))
        fresh.replace(folder / _INDEX)
        self._held[place] = _Held(version, files, cached)
        _clean(folder, {_INDEX, *files.values()})


def read_index(folder: Path) -> tuple[str, dict[str, str]]:
    """The version of the state in a shard's folder, and the file of each part. Raises FileNotFoundError."""
    version, files = orjson.loads((folder / _INDEX).read_bytes())
    return version, files


def shard_folders(root: Path, query: str) -> Iterator[tuple[int, Path]]:
    """The number and the folder of each shard of a query that was folded on this machine."""
    for folder in root.glob(f"shard-{query}-*"):
        if (folder / _INDEX).exists():
            yield int(re.sub(r".*-", "", folder.name)), folder


def _clean(folder: Path, used: set[str]) -> None:
    for file in folder.iterdir():
        if file.name not in used:
            file.unlink(missing_ok=True)


# Gives a worker its cache. A cache itself can't travel with a query to the workers.
Caches = Callable[[], StateCache]


@cache
def of_this_worker() -> StateCache:
    """The cache of the process that this is, beside Spark's shuffle files."""
    return StateCache(Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0]))
