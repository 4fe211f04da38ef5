"""One secured installation for the whole suite, and the report."""

from pathlib import Path

import orjson
import pytest

from infra.local.identities import ADMIN
from tests.integration.conftest import free_ports
from tests.rights.installation import Installation

REPORT = Path("build/rights.json")


@pytest.fixture(scope="session")
def report(request):
    """What the tests have found; it is written at the end."""
    facts = {}
    yield facts
    facts["passed"] = request.session.testsfailed == 0
    REPORT.parent.mkdir(parents=True, exist_ok=True)
    REPORT.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))


@pytest.fixture(scope="module")
def installation(tmp_path_factory):
    """Secured servers with the users of an installation; this process is their administrator."""
    made = Installation(tmp_path_factory.mktemp("secured"), free_ports(5))
    try:
        made.servers.up()
        with made.as_user(ADMIN):
            made.prepare()
            yield made
    finally:
        made.servers.down()
