"""AWS's variables are enough for the clients that aren't Hadoop's, too."""

import os

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.runtime.object_store import delta_options, plain_url
from jobs.runtime.settings import Settings
from ops.savepoints.store import Store


@pytest.fixture(autouse=True)
def environment(store, monkeypatch):
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)


def test_savepoints_read_write_and_delete():
    folder = Store.of("s3a://kappa/savepoints")
    assert folder.names() == []
    folder.write("statistics/manifest.json", b"{}")
    assert (folder.names(), folder.read("statistics/manifest.json")) == (["statistics/manifest.json"], b"{}")
    folder.remove()
    assert folder.names() == []


def test_a_dropped_generation_leaves_none_of_its_files():
    for generation in ("v2", "v22"):
        Store.of(f"s3a://kappa/checkpoints/{generation}/detector").write("offsets/0", b"v1")
    own = Settings(checkpoints="s3a://kappa/checkpoints", generation="v2")
    for _ in range(2):
        Store.of(own.checkpoint_of("")).remove()
        assert Store.of("s3a://kappa/checkpoints").names() == ["v22/detector/offsets/0"]


def test_deltalake_reads_what_sql_asks_for():
    table, options = plain_url("s3a://kappa/delta/numbers"), delta_options(os.environ)
    write_deltalake(table, pa.table({"number": [1, 2]}), storage_options=options)
    assert DeltaTable(table, storage_options=options).to_pyarrow_table().to_pydict() == {"number": [1, 2]}
