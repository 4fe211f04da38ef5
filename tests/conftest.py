"""What unit and integration tests share."""

import os
from pathlib import Path

import pytest

from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from tests.spark import end_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for all tests, configured as a job's with twice its heap: thousands of tests fill it a little."""
    settings = Settings(home=tmp_path_factory.mktemp("spark"), shuffle_partitions=2, driver_memory="2g")
    session = open_session("tests", settings)
    yield session
    end_spark()


@pytest.fixture(scope="session")
def samples():
    folder = Path(os.environ.get("KAPPA_SHARED", "../shared")) / "samples"
    if not folder.is_dir():
        pytest.skip(f"the collectors' sample bytes aren't at {folder} (set KAPPA_SHARED)")
    return folder
