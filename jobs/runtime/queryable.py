"""What a running fold knows, answered over HTTP while it runs, from the files in which its shards are cached.

The state of a shard is in files after each batch (state_cache.py), for whichever worker folds it next. They are read
here, beside the query and without it: no Spark job, no copy, and of a large column only the pages that a question
needs. They may be one micro-batch ahead of what is committed; as its offsets are planned and the fold depends on them
alone, that is what will be committed.
"""

import mmap
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from numpy.typing import NDArray

from jobs.runtime.packed_state import COLUMN, HEAD, VALUE, Packed
from jobs.runtime.state_cache import read_index, shard_folders

if TYPE_CHECKING:  # a job without Spark has metrics, too
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ATTEMPTS = 5  # to read a version whole while a worker replaces it
MOST_DECODED = 64  # parts of which the values are kept

Arguments = Mapping[str, str]


class NotKnownError(Exception):
    """What is asked for isn't in the state."""


class NotHereError(Exception):
    """The state can't be read here, or not now."""


class InvalidQuestionError(Exception):
    """An argument is missing, or can't be used; the text names it."""


class SavedShard:
    """The state of one shard as it is in files. Raises FileNotFoundError where a worker has replaced it meanwhile."""

    def __init__(self, number: int, folder: Path, decoded: "Decoded") -> None:
        self.number, self._folder, self._decoded = number, folder, decoded
        _, self._files = read_index(folder)
        _, layout = self._json(HEAD)
        self._layout = {name: rest for name, *rest in layout}

    @property
    def columns(self) -> Sequence[str]:
        """The names of its columns."""
        return tuple(self._layout)

    def value(self, name: str) -> Any:
        """A value of its header. It is shared: it must not be changed."""
        return self._json(VALUE + name)

    def column(self, name: str) -> NDArray[Any]:
        """A column, which is only as large in memory as what is looked at if it isn't packed more narrowly."""
        kind, narrow, length, first = self._layout[name]
        return Packed(kind, narrow, length, first, self._bytes(COLUMN + name)).column_or_view()

    def _json(self, part: str) -> Any:
        return self._decoded.get(self._folder / self._files[part])

    def _bytes(self, part: str) -> Any:
        return mapped(self._folder / self._files[part])


class Decoded:
    """The values of JSON parts by file: a part that doesn't change keeps its file, and a file never changes."""

    def __init__(self) -> None:
        self._values: dict[Path, Any] = {}
        self._lock = threading.Lock()

    def get(self, file: Path) -> Any:
        """What a file holds."""
        with self._lock:
            if file in self._values:
                self._values[file] = self._values.pop(file)  # the newest is last
                return self._values[file]
        value = orjson.loads(file.read_bytes())
        with self._lock:
            self._values[file] = value
            for oldest in list(self._values)[:-MOST_DECODED]:
                del self._values[oldest]
        return value


def mapped(file: Path) -> Any:
    """The bytes of a file, of which only what is looked at is read."""
    with file.open("rb") as opened:
        size = opened.seek(0, 2)
        return mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) if size else b""


Answer = Callable[[Sequence[SavedShard], Arguments], Any]


@dataclass(frozen=True)
class Question:
    """What a fold can be asked: `answer` takes its shards and the arguments of the address `path`."""

    path: str
    answer: Answer


class Questions:
    """The questions that the queries of this process answer."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[Question, str, Path]] = {}  # by path: of which query, and where its shards are
        self._decoded = Decoded()

    def open(self, spark: "SparkSession", query: "StreamingQuery", questions: Sequence[Question]) -> None:
        """Answer these about a running query."""
        for question in questions:
            self._asked[question.path] = (question, str(query.id), local_folder(spark))

    @property
    def paths(self) -> Sequence[str]:
        """The addresses at which there are answers."""
        return tuple(self._asked)

    def answer(self, path: str, arguments: Arguments) -> Any:
        """The answer to a question.

        Raises KeyError if there is no such question, NotKnownError, InvalidQuestionError, or NotHereError.
        """
        question, query, root = self._asked[path]
        for _ in range(ATTEMPTS):
            try:
                shards = list(self._shards(root, query))
                if not shards:
                    break
                return question.answer(shards, arguments)
            except FileNotFoundError:
                continue
        raise NotHereError("no shard has been folded on this machine since the job began")

    def _shards(self, root: Path, query: str) -> Iterator[SavedShard]:
        for number, folder in sorted(shard_folders(root, query)):
            yield SavedShard(number, folder, self._decoded)


def local_folder(spark: "SparkSession") -> Path:
    """Where this process keeps what it shuffles, and the workers the state of shards."""
    assert spark._jvm
    manager = spark._jvm.org.apache.spark.SparkEnv.get().blockManager().diskBlockManager()
    return Path(manager.localDirs()[0].getPath())
