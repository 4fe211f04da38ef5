import pytest

from infra.errors import UserError
from ops.savepoints.store import Store, copy_checkpoint

ALWAYS = {
    "metadata",
    "sources/events/0",
    "state/0/_metadata/metadata",
    "state/0/0/_metadata/schema",
    "state/0/0/SSTs/a.sst",
}


@pytest.fixture
def store(tmp_path):
    return Store.of(str(tmp_path / "checkpoint"))


def fill(store, *names):
    for name in names:
        store.write(name, name.encode())


def test_a_copy_ends_with_the_last_batch_that_is_done(store, tmp_path):
    """Batch 2 is planned and half done: state version 3 may be any attempt's."""
    done = {"offsets/0", "offsets/1", "commits/0", "commits/1", "state/0/0/1.changelog", "state/0/0/2.zip"}
    fill(store, *ALWAYS, *done, "offsets/2", "state/0/0/3.changelog", "state/0/0/3.zip", ".metadata.crc")
    copy = Store.of(str(tmp_path / "copy"))

    assert copy_checkpoint(store, copy) == 1
    assert set(copy.names()) == ALWAYS | done | {"offsets/2"}
    assert copy.read("state/0/0/2.zip") == b"state/0/0/2.zip"


def test_what_a_running_job_purges_meanwhile_is_not_missed(store, tmp_path, monkeypatch):
    fill(store, *ALWAYS, "offsets/7", "commits/7", "state/0/0/8.zip")
    names = [*store.names(), "state/0/0/1.changelog"]
    monkeypatch.setattr(Store, "names", lambda self: names if self.path == store.path else ["7"])
    assert copy_checkpoint(store, Store.of(str(tmp_path / "copy"))) == 7


def test_without_a_batch_there_is_nothing_to_copy(store, tmp_path):
    fill(store, "metadata", "offsets/0")
    with pytest.raises(UserError, match="no batch is done"):
        copy_checkpoint(store, Store.of(str(tmp_path / "copy")))
