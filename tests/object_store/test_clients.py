"""AWS's variables are enough for the clients that aren't Hadoop's, too."""

import os

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.runtime.object_store import delta_options, plain_url
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


def test_deltalake_reads_what_sql_asks_for():
    table, options = plain_url("s3a://kappa/delta/numbers"), delta_options(os.environ)
    write_deltalake(table, pa.table({"number": [1, 2]}), storage_options=options)
    assert DeltaTable(table, storage_options=options).to_pyarrow_table().to_pydict() == {"number": [1, 2]}
