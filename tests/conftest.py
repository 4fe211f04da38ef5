"""What unit and integration tests share."""

import os
from pathlib import Path

import pytest

from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from tests.spark import end_spark


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """One session for all tests, configured as a job's with thrice its heap: thousands of tests fill it a little.

    Spark keeps what tests have broadcast in memory: by default in up to six tenths of the heap.
    """
    settings = Settings(home=tmp_path_factory.mktemp("spark"), shuffle_partitions=2, driver_memory="3g")
    session = open_session("tests", settings, **{"spark.memory.fraction": "0.3"})
    yield session
    end_spark()


@pytest.fixture(scope="session")
def samples():
    folder = Path(os.environ.get("KAPPA_SHARED", "../shared")) / "samples"
    if not folder.is_dir():
        pytest.skip(f"the collectors' sample bytes aren't at {folder} (set KAPPA_SHARED)")
    return folder
