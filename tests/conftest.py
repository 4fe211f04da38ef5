"""What unit and integration tests share."""

import pytest

from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for all tests, configured as a job's."""
    session = open_session("tests", Settings(home=tmp_path_factory.mktemp("spark"), shuffle_partitions=2))
    yield session
    session.stop()
