import pytest
from starlette.testclient import TestClient

from ops.console.server import application
from tests.unit.ops.console.sources import FakeSources


@pytest.fixture
def sources():
    return FakeSources()


@pytest.fixture
def browser(sources):
    return TestClient(application(sources, ("127.0.0.1",)), base_url="http://127.0.0.1")
