"""A savepoint as one file: a gzipped tar whose first member is the manifest, which lists all others, size and hash.

What is read may come from anybody. Each header is parsed by itself, and only regular files that the manifest lists are
taken: links, devices and the extended headers by which a name or a size could be anything are refused unread. Memory
is bounded by one block, disk by the sizes that the manifest says, and nothing is written before all was read once.
"""

import gzip
import hashlib
import io
import re
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.errors import UserError
from infra.settings import describe
from ops.savepoints.store import Store

MANIFEST = "savepoint.json"
# A manifest is some lines of a savepoint and one of each file.
LARGEST_MANIFEST = 16_000_000
BLOCK = 1_000_000
_PART = r"[A-Za-z0-9_=,+@-][A-Za-z0-9._=,+@-]*"
_NAME = re.compile(rf"checkpoint(/{_PART})+")
_LONGEST_NAME = 255  # of the format ustar
_LONGEST_REASON = 300  # of what is said about a manifest: it repeats the value


class Source(Protocol):
    """What can be read in parts."""

    def read(self, size: int, /) -> bytes: ...


class Listed(BaseModel):
    """What the manifest says about a file."""

    model_config = ConfigDict(frozen=True)

    bytes: Annotated[int, Field(ge=0)]
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Contents(BaseModel):
    """The files of an exported savepoint, in the order of the archive."""

    files: dict[str, Listed]

    @property
    def total(self) -> int:
        """The bytes of all files."""
        return sum(one.bytes for one in self.files.values())


def _check_names(files: Collection[str]) -> None:
    """Raises UserError if one isn't below `checkpoint/`, or is the folder of another."""
    for name in files:
        if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
            raise UserError(f"lists {name[:_LONGEST_NAME]!r}, which would leave the savepoint's folder")
        folders = name.split("/")[:-1]
        if any("/".join(folders[: end + 1]) in files for end in range(len(folders))):
            raise UserError(f"lists {name!r}, which lies below another file")


def write(file: Path, store: Store, manifest: Callable[[Contents], bytes]) -> None:
    """Write the files of a savepoint's folder, after the manifest that is made of their list."""
    contents = listed(store)
    head = manifest(contents)
    try:
        with tarfile.open(file, "w:gz", format=tarfile.USTAR_FORMAT) as archive:
            archive.addfile(_header(MANIFEST, len(head)), io.BytesIO(head))
            for name, one in contents.files.items():
                with store.open(name) as stream:
                    archive.addfile(_header(name, one.bytes), stream)
    except BaseException:
        file.unlink(missing_ok=True)
        raise


def listed(store: Store) -> Contents:
    """The files of a savepoint's folder, each read whole."""
    return Contents(files={name: _listed(store, name) for name in store.names() if name != MANIFEST})


def verify(store: Store, contents: Contents) -> None:
    """Read each file of a savepoint's folder. Raises UserError if one is missing, or isn't what it was."""
    for name, expected in contents.files.items():
        try:
            found = _listed(store, name)
        except FileNotFoundError:
            raise UserError(f"{store.path}/{name}: is gone; take another savepoint, or import it again") from None
        if found != expected:
            raise UserError(
                f"{store.path}/{name}: has {found.bytes:,} bytes with the SHA-256 {found.sha256}; {MANIFEST} says "
                f"{expected.bytes:,} with {expected.sha256}: take another savepoint, or import it again"
            )


def _listed(store: Store, name: str) -> Listed:
    with store.open(name) as stream:
        size, found = _digest(stream.read, None)
    return Listed(bytes=size, sha256=found)


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size = size
    return header


def check(file: Path) -> tuple[bytes, Contents]:
    """Read a whole archive, writing nothing; gives its manifest and the files that it holds.

    Raises UserError if anything in it isn't as the manifest says.
    """
    with _reading(file) as archive:
        manifest, contents = _manifest(archive)
        for name, listed in _members(archive, contents):
            _take(archive, name, listed, None)
    return manifest, contents


def unpack(file: Path, contents: Contents, into: Store) -> None:
    """Write the files of a checked archive, which are checked again as they are written.

    Raises UserError, and leaves nothing, if they have changed meanwhile.
    """
    try:
        with _reading(file) as archive:
            if _manifest(archive)[1] != contents:
                raise UserError("has changed since it was checked")
            for name, listed in _members(archive, contents):
                with into.create(name) as target:
                    _take(archive, name, listed, target.write)
    except BaseException:
        into.remove()
        raise


@contextmanager
def _reading(file: Path) -> Iterator[Source]:
    try:
        with gzip.open(file, "rb") as archive:
            yield archive
    except (OSError, EOFError, zlib.error, tarfile.TarError) as error:
        raise UserError(f"{file}: is no exported savepoint: {str(error) or type(error).__name__}") from None
    except UserError as error:
        raise UserError(f"{file}: {error}") from None


def _manifest(archive: Source) -> tuple[bytes, Contents]:
    header = _next(archive)
    if header is None or header.name != MANIFEST:
        raise UserError(
            f"is no exported savepoint: it doesn't begin with {MANIFEST}; one of an earlier version must be exported "
            "again by this one"
        )
    if header.size > LARGEST_MANIFEST:
        raise UserError(f"its {MANIFEST} has {header.size:,} bytes; a savepoint's has at most {LARGEST_MANIFEST:,}")
    manifest = _exactly(archive, header.size)
    _exactly(archive, -header.size % tarfile.BLOCKSIZE)
    try:
        contents = Contents.model_validate_json(manifest)
    except ValidationError as error:
        raise UserError(f"its {MANIFEST} can't be used: {describe(error)[:_LONGEST_REASON]}") from None
    _check_names(contents.files)
    return manifest, contents


def _members(archive: Source, contents: Contents) -> Iterator[tuple[str, Listed]]:
    """The members that are to be read next, each checked against the manifest; all of it, and nothing else."""
    missing = dict(contents.files)
    while header := _next(archive):
        listed = contents.files.get(header.name)
        if listed is None:
            raise UserError(f"holds {header.name!r}, which its {MANIFEST} doesn't list")
        if missing.pop(header.name, None) is None:
            raise UserError(f"holds {header.name!r} twice")
        if header.size != listed.bytes:
            raise UserError(f"{header.name!r} has {header.size:,} bytes; its {MANIFEST} says {listed.bytes:,}")
        yield header.name, listed
    if missing:
        raise UserError(f"lacks {next(iter(missing))!r}, which its {MANIFEST} lists")
    if archive.read(tarfile.RECORDSIZE).strip(b"\0") or archive.read(1):
        raise UserError("goes on after its end")


def _next(archive: Source) -> tarfile.TarInfo | None:
    """The next header, None at the end. An extended one is refused by its type: its content could be of any size."""
    block = _exactly(archive, tarfile.BLOCKSIZE)
    if not block.strip(b"\0"):
        return None
    header = tarfile.TarInfo.frombuf(block, "utf-8", "replace")
    if header.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise UserError(f"holds {header.name!r}, which is no regular file (type {header.type!r})")
    if header.size < 0:
        raise UserError(f"{header.name!r} has {header.size} bytes")
    return header


def _take(archive: Source, name: str, listed: Listed, write: Callable[[bytes], object] | None) -> None:
    remaining = listed.bytes

    def part(_: int) -> bytes:
        nonlocal remaining
        block = _exactly(archive, min(remaining, BLOCK))
        remaining -= len(block)
        return block

    _, found = _digest(part, write)
    if found != listed.sha256:
        raise UserError(f"{name!r} has the SHA-256 {found}; its {MANIFEST} says {listed.sha256}")
    _exactly(archive, -listed.bytes % tarfile.BLOCKSIZE)


def _digest(read: Callable[[int], bytes], write: Callable[[bytes], object] | None) -> tuple[int, str]:
    """Read to the end, part by part; gives the number of bytes and their SHA-256."""
    size, found = 0, hashlib.sha256()
    while block := read(BLOCK):
        size += len(block)
        found.update(block)
        if write:
            write(block)
    return size, found.hexdigest()


def _exactly(archive: Source, size: int) -> bytes:
    found = b""
    while len(found) < size:
        block = archive.read(size - len(found))
        if not block:
            raise EOFError("it is cut off")
        found += block
    return found
