"""A chain with some minutes of a simulated cloud in it, which the live generation has processed; and the report."""

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from tests.replay.chain import Chain
from tests.replay.report import Report

PORT = int(os.environ.get("KAPPA_REPLAY_PORT", "31800"))


@pytest.fixture(scope="session")
def chain():
    """Servers, simulated telemetry, and the live generation's results. Its processes are stopped."""
    home = Path(tempfile.mkdtemp(prefix="replay-"))
    chain = Chain(home, PORT)
    try:
        chain.up()
        chain.feed()
        chain.run_live()
        yield chain
    finally:
        chain.down()
        shutil.rmtree(home, ignore_errors=True)


@pytest.fixture(scope="session")
def report():
    """What `build/replay.json` will say."""
    return Report()
