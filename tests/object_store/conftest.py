"""An object store, and a Spark session that uses it."""

import pytest

from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from tests.integration.conftest import free_ports
from tests.object_store.store import BUCKET, ObjectStore


@pytest.fixture(scope="session")
def store():
    store = ObjectStore(free_ports(1))
    yield store
    store.close()


@pytest.fixture(scope="session")
def spark(store, tmp_path_factory):
    settings = Settings(
        home=tmp_path_factory.mktemp("home"), checkpoints=f"s3a://{BUCKET}/checkpoints", delta=f"s3a://{BUCKET}/delta"
    )
    with pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment.items():
            patch.setenv(name, value)
        session = open_session("object-store", settings)
        yield session
        session.stop()
