"""Exported savepoints as a stranger could have made them: each is refused, in one line, and nothing is written."""

import gzip
import hashlib
import io
import tarfile
import tracemalloc

import orjson
import pytest

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.savepoints import archive, savepoints
from ops.savepoints.archive import MANIFEST

FILES = {"checkpoint/metadata": b'{"id":"run-1"}', "checkpoint/offsets/7": b"v2", "checkpoint/commits/7": b"v1"}
SAVED = {
    "name": "sp",
    "job": "detector",
    "generation": "live",
    "batch": 7,
    "planned": False,
    "run": "run-1",
    "offsets": {"statistics": {"0": 40}},
    "sources": ["statistics"],
    "markers": [],
    "driver": 8,
    "shuffle_partitions": 2,
    "settings": {},
    "layout": {},
    "shards": 4,
}


def listed(files=FILES):
    return {name: {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()} for name, text in files.items()}


def manifest(contents=FILES, **changed):
    return orjson.dumps(SAVED | {"files": listed(contents)} | changed)


def claim(size, digest="0" * 64, name="checkpoint/metadata"):
    """A manifest that says this of its only file."""
    return manifest(files={name: {"bytes": size, "sha256": digest}})


def member(name, content=b"", kind=tarfile.REGTYPE, size=None):
    """A member's bytes: header, content, filling. `size` is what the header says against the content."""
    header = tarfile.TarInfo(name)
    header.type, header.size, header.linkname = kind, len(content) if size is None else size, "/etc/passwd"
    return header.tobuf(tarfile.GNU_FORMAT) + content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


def tar(head, *members, end=b"\0" * 1024):
    return member(MANIFEST, head) + b"".join(members) + end


WHOLE = [member(name, content) for name, content in FILES.items()]
OUTSIDE = "would leave the savepoint's folder"
TWICE = "holds 'checkpoint/metadata' twice"

HOSTILE = {
    "a name that leads out": (tar(manifest({"checkpoint/../../x": b"1"}), member("checkpoint/../../x", b"1")), OUTSIDE),
    "a name beside the checkpoint": (tar(manifest({"x": b"1"}), member("x", b"1")), OUTSIDE),
    "an absolute name": (tar(manifest({"/tmp/x": b"1"}), member("/tmp/x", b"1")), OUTSIDE),
    "a name with a backslash": (tar(manifest({"checkpoint/..\\x": b"1"})), OUTSIDE),
    "a name with a line end": (tar(manifest({"checkpoint/a\n": b"1"})), OUTSIDE),
    "the manifest as a file": (tar(manifest({MANIFEST: b"1"})), OUTSIDE),
    "a hidden name": (tar(manifest({"checkpoint/.ssh/x": b"1"})), OUTSIDE),
    "a long name": (tar(manifest({"checkpoint/" + "x" * 300: b"1"})), OUTSIDE),
    "a file below a file": (tar(manifest({"checkpoint/a": b"1", "checkpoint/a/b": b"2"})), "lies below another file"),
    "a symbolic link": (tar(manifest(), member("checkpoint/metadata", b"", tarfile.SYMTYPE)), "no regular file"),
    "a hard link": (tar(manifest(), member("checkpoint/metadata", b"", tarfile.LNKTYPE)), "no regular file"),
    "a device": (tar(manifest(), member("checkpoint/metadata", b"", tarfile.CHRTYPE)), "no regular file"),
    "a pipe": (tar(manifest(), member("checkpoint/metadata", b"", tarfile.FIFOTYPE)), "no regular file"),
    "a folder": (tar(manifest(), member("checkpoint/metadata", b"", tarfile.DIRTYPE)), "no regular file"),
    "a GNU long name": (tar(manifest(), member("x", b"/tmp/x", tarfile.GNUTYPE_LONGNAME)), "no regular file"),
    "a pax header": (tar(manifest(), member("x", b"19 path=/tmp/escape", tarfile.XHDTYPE)), "no regular file"),
    "a member twice": (tar(manifest(), WHOLE[0], WHOLE[0]), TWICE),
    "a member that isn't listed": (tar(manifest(), *WHOLE, member("checkpoint/more", b"x")), "doesn't list"),
    "a member that leads out, unlisted": (tar(manifest(), *WHOLE, member("../../escaped", b"x")), "doesn't list"),
    "a member that is missing": (tar(manifest(), *WHOLE[:2]), "lacks 'checkpoint/commits/7'"),
    "another content": (tar(manifest(), member("checkpoint/metadata", b'{"id":"run-2"}')), "has the SHA-256"),
    "a larger content": (tar(manifest(), member("checkpoint/metadata", b"x" * 99)), "has 99 bytes"),
    "a size below 0": (tar(manifest(), member("checkpoint/metadata", size=-1)), "bytes"),
    "a wrong checksum": (tar(manifest(), b"x" + WHOLE[0][1:]), "bad checksum"),
    "a cut file": (tar(manifest(), *WHOLE, end=b"")[:-700], "cut off"),
    "no end": (tar(manifest(), *WHOLE, end=b""), "cut off"),
    "something after the end": (tar(manifest(), *WHOLE, end=b"\0" * 1024 + b"more"), "goes on after its end"),
    "no manifest": (b"".join(WHOLE) + b"\0" * 1024, "earlier version must be exported again"),
    "a manifest that comes last": (b"".join([*WHOLE, member(MANIFEST, manifest())]) + b"\0" * 1024, "earlier version"),
    "a manifest without a list": (tar(orjson.dumps(SAVED), *WHOLE), "files: is missing"),
    "a manifest that is no JSON": (tar(b"{", *WHOLE), "can't be used"),
    "a size in the manifest below 0": (tar(claim(-1)), "can't be used"),
    "no hash": (tar(claim(1, "-")), "can't be used"),
    "a name that leads out of savepoints": (
        tar(manifest(name="../../../victim/enrichment"), *WHOLE),
        "use up to 100 letters",
    ),
    "a generation that leads out": (tar(manifest(generation="../x"), *WHOLE), "generation"),
    "a job that leads out": (tar(manifest(job="../x"), *WHOLE), "job"),
    "an unknown job": (tar(manifest(job="indexer"), *WHOLE), "savepoints are taken of"),
    "no offsets": (tar(manifest(offsets="x"), *WHOLE), "offsets"),
    "a size that nothing has": (tar(claim(1 << 60)), "lacks 'checkpoint/metadata'"),
    "an empty name": (tar(manifest(name=""), *WHOLE), "use up to 100 letters"),
}


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path / "home")


def refusal(content, settings, tmp_path):
    """What is said of a file with this content; nothing is written."""
    file = tmp_path / "hostile.tgz"
    file.write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(UserError) as raised:
        savepoints.take_in(file, None, settings)
    assert sorted(tmp_path.rglob("*")) == before
    said = str(raised.value)
    assert "\n" not in said and len(said) < 800
    return said


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_file_is_refused(case, settings, tmp_path):
    content, reason = HOSTILE[case]
    assert reason in refusal(gzip.compress(content), settings, tmp_path)


@pytest.mark.parametrize(
    "content",
    [b"", b"hello", gzip.compress(b"", mtime=0), gzip.compress(b"hello", mtime=0), b"PK\x03\x04" + b"\0" * 90],
)
def test_what_is_no_archive_is_refused(content, settings, tmp_path):
    assert "is no exported savepoint" in refusal(content, settings, tmp_path)


def test_a_gzip_that_is_cut_is_refused(settings, tmp_path):
    assert "is no exported savepoint" in refusal(gzip.compress(tar(manifest(), *WHOLE))[:-30], settings, tmp_path)


def bomb(*parts, size=300_000_000):
    """A gzipped tar with so many zeros after these parts."""
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1) as stream:
        for part in parts:
            stream.write(part)
        for _ in range(size // 1_000_000):
            stream.write(bytes(1_000_000))
    return packed.getvalue()


BIG = 300_000_000
BOMBS = {
    "a member larger than listed": (member(MANIFEST, manifest()), member("checkpoint/metadata", size=BIG)),
    "a manifest": (member(MANIFEST, size=BIG),),
    "a pax header": (member(MANIFEST, manifest()), member("x", b"", tarfile.XHDTYPE, size=BIG)),
    "a GNU long name": (member(MANIFEST, manifest()), member("x", b"", tarfile.GNUTYPE_LONGNAME, size=BIG)),
    "after the end": (tar(manifest(), *WHOLE),),
    "of the size that is listed, with another hash": (
        member(MANIFEST, claim(BIG)),
        member("checkpoint/metadata", size=BIG),
    ),
}


@pytest.mark.parametrize("case", BOMBS)
def test_a_bomb_is_refused_within_little_memory(case, settings, tmp_path):
    content = bomb(*BOMBS[case])
    assert len(content) < 3_000_000
    tracemalloc.start()
    try:
        refusal(content, settings, tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_more_than_the_disk_has_room_for_is_refused(settings, tmp_path, monkeypatch):
    monkeypatch.setattr("ops.savepoints.store.Store.free_bytes", lambda self: 10)
    said = refusal(gzip.compress(tar(manifest(), *WHOLE)), settings, tmp_path)
    assert "unpacks to 18 bytes" in said and "has room for 10" in said


def test_a_file_that_changes_between_check_and_unpacking_leaves_nothing(settings, tmp_path):
    file = tmp_path / "sp.tgz"
    file.write_bytes(gzip.compress(tar(manifest(), *WHOLE)))
    _, contents = archive.check(file)
    file.write_bytes(gzip.compress(tar(manifest(), WHOLE[0], member("checkpoint/offsets/7", b"v3"), WHOLE[2])))
    store = savepoints.store_of("sp", settings)
    with pytest.raises(UserError, match="has the SHA-256"):
        archive.unpack(file, contents, store)
    assert store.names() == []


def test_a_whole_file_is_taken_in(settings, tmp_path):
    file = tmp_path / "sp.tgz"
    file.write_bytes(gzip.compress(tar(manifest(), *WHOLE)))
    assert savepoints.take_in(file, None, settings).batch == 7
    store = savepoints.store_of("sp", settings)
    assert {name: store.read(name) for name in store.names() if name != MANIFEST} == FILES
    again = tmp_path / "again.tgz"
    savepoints.export(savepoints.find("sp", settings), settings, again)
    assert archive.check(again)[1].files == archive.check(file)[1].files
