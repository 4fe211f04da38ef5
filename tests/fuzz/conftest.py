"""A session for frames of many values at once."""

import pytest

from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """As a job's, but with more memory: frames made in Python keep their values in the heap, Kafka's batches don't."""
    home = tmp_path_factory.mktemp("spark")
    session = open_session("fuzz", Settings(home=home, shuffle_partitions=2, driver_memory="4g"))
    yield session
    session.stop()
