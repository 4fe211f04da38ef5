"""A query's checkpoint as files: copied consistently while the query runs."""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyarrow import NativeFile, fs

from infra.errors import UserError
from jobs.runtime.checkpoint import INITIAL, WRITTEN
from jobs.runtime.object_store import plain_url

# Written once and never changed: file name -> the batch that wrote it. State version n is what batch n - 1 left.
_STATE_VERSION = re.compile(r"/(\d+)(?:_[^/]*)?\.(?:zip|changelog|delta|snapshot)$")


@dataclass(frozen=True)
class Store:
    """A folder on a local disk or in an object store (s3://, gs://, hdfs://)."""

    files: fs.FileSystem
    path: str

    @classmethod
    def of(cls, url: str) -> "Store":
        """Raises UserError if no file system is known for the URL."""
        try:
            files, path = fs.FileSystem.from_uri(plain_url(url))
        except (ValueError, OSError) as error:
            raise UserError(f"{url}: is no folder that can be read: {error}") from error
        return cls(files, path.rstrip("/"))

    def __truediv__(self, name: str) -> "Store":
        return Store(self.files, f"{self.path}/{name}")

    def names(self) -> list[str]:
        """All files below, relative; none if there is no such folder."""
        found = self.files.get_file_info(fs.FileSelector(self.path, recursive=True, allow_not_found=True))
        return sorted(one.path.removeprefix(f"{self.path}/") for one in found if one.is_file)

    def batches(self, kind: str) -> list[int]:
        """The batches in `offsets` (planned), `commits` (done) or another log of files named by batch, ascending."""
        return sorted(int(name) for name in (self / kind).names() if name.isdigit())

    def read(self, name: str) -> bytes:
        """A file's bytes. Raises OSError."""
        with self.open(name) as stream:
            return bytes(stream.read())

    def open(self, name: str) -> NativeFile:
        """A file as a stream to read. Raises OSError."""
        return self.files.open_input_stream(f"{self.path}/{name}")

    def create(self, name: str) -> NativeFile:
        """A new file as a stream to write, and the folders above it."""
        path = f"{self.path}/{name}"
        self.files.create_dir(path.rsplit("/", 1)[0], recursive=True)
        return self.files.open_output_stream(path)

    def free_bytes(self) -> int | None:
        """How much it has room for; None of an object store, which doesn't say."""
        if not isinstance(self.files, fs.LocalFileSystem):
            return None
        there = next(folder for folder in Path(self.path).parents if folder.exists())
        return shutil.disk_usage(there).free

    def write(self, name: str, content: bytes) -> None:
        """Write a file, and the folders above it."""
        with self.create(name) as stream:
            stream.write(content)

    def exists(self) -> bool:
        """Whether there is such a folder."""
        return self.files.get_file_info(self.path).type is not fs.FileType.NotFound

    def remove(self) -> None:
        """Delete it with all that is below, if it is there."""
        if self.exists():
            self.files.delete_dir(self.path)


def copy_checkpoint(source: Store, target: Store, batch: int | None = None) -> int:
    """Copy a checkpoint as of a batch that is done, by default the last, with the plan of the next if it is there.

    The query may run: what belongs to later batches is left out, and what it deletes meanwhile is older than needed.
    Returns the number of the batch.

    Raises UserError if no batch is done.
    """
    done = source.batches("commits")
    if not done:
        raise UserError(f"{source.path}: no batch is done there; there is nothing to keep yet")
    batch = done[-1] if batch is None else batch
    for name in _needed(source, batch):
        try:
            target.write(name, source.read(name))
        except FileNotFoundError:
            continue  # of an old batch, and purged since it was listed
    return batch


def _needed(source: Store, batch: int) -> Iterator[str]:
    names = source.names()
    # Snapshots list the .sst files that they consist of, which are there before them: so these are looked for after.
    later = [name for name in source.names() if name.endswith((".sst", ".log"))]
    for name in dict.fromkeys([*names, *later]):
        folder, _, file = name.rpartition("/")
        is_of_jobs = name == WRITTEN or folder == INITIAL
        if not is_of_jobs and not file.startswith(".") and _version(name) <= batch + 1:
            yield name


def _version(name: str) -> int:
    """The batch from which on a file of a checkpoint counts; 0 for what always does."""
    folder, _, file = name.partition("/")
    if folder == "offsets":
        return int(file)  # one more than is done: a planned batch must be repeated as it was planned
    if folder == "commits":
        return int(file) + 1
    found = _STATE_VERSION.search(name)
    return int(found[1]) if found else 0
