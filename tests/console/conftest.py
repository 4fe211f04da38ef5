"""One running chain for the whole suite, one browser, and the report."""

import pytest

from tests.console.browser import Visitor, chromium
from tests.console.house import House
from tests.console.report import Report
from tests.integration.conftest import free_ports


@pytest.fixture(scope="session")
def house(tmp_path_factory):
    house = House(tmp_path_factory.mktemp("console"), free_ports(20))
    try:
        house.up()
        yield house
    finally:
        house.down()


@pytest.fixture(scope="session")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(browser, house):
    """A person at a desk; at the end nothing may have gone wrong in the browser."""
    visitor = Visitor(browser, house.address)
    yield visitor
    visitor.close()
    assert visitor.faults == []


@pytest.fixture(scope="session")
def report(request):
    report = Report()
    yield report
    report.has_passed = request.session.testsfailed == 0
    report.save()


@pytest.fixture(autouse=True)
def saved(report):
    """What a test has shown is in the file when it ends."""
    yield
    report.save()
