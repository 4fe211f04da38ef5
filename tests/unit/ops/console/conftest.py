from functools import partial

import pytest
from starlette.testclient import TestClient

from ops.console.server import application
from ops.console.settings import ConsoleSettings
from tests.unit.ops.console.sources import FakeSources
from tests.unit.ops.console.writes import FakeWrites


@pytest.fixture
def sources():
    return FakeSources()


@pytest.fixture
def writes():
    return FakeWrites()


@pytest.fixture
def browser(sources, writes):
    """A browser of the person ada, who runs the console."""
    return browse(sources, writes)


@pytest.fixture
def browsing(sources, writes):
    """Makes a browser of a console with other settings."""
    return partial(browse, sources, writes)


def browse(sources, writes, user="ada", **own):
    app = application(sources, ConsoleSettings(**own), writes, user)
    return TestClient(app, base_url=own.get("public_url") or "http://127.0.0.1", client=("127.0.0.1", 5000))
