"""A server dies while people look: each view that needs it dims and says so, the others go on, and all come back."""

import threading

import pytest
from playwright.sync_api import expect

from jobs.runtime.settings import Settings
from ops.console.server import application
from ops.console.settings import ConsoleSettings
from ops.console.sources import Sources
from ops.console.unchanged import UnchangedTopics
from ops.console.writes import Writes
from tests.chaos.proxy import Proxy
from tests.console.browser import Visitor, chromium, needs_chromium
from tests.console.serving import serving
from tests.integration.conftest import free_ports

pytestmark = needs_chromium

OWN = ConsoleSettings(patience_seconds=2, fresh_seconds=0)
# By the server that a view needs: its address, and what it goes on to show.
OF_ELASTICSEARCH = {
    "/fleet?span=1h": "vm-2",
    "/fleet/vm-1?span=1h": "cpu",
    "/incidents": "vm-1 is odd",
    "/incidents/i1": "Likely causes",
    "/rejected": "not_json",
    "/control/suppress?machine=vm-1": "novelties of the last 7 days",
}
OF_KAFKA = {"/control": "ada", "/generations": "promoted"}


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def port():
    return free_ports(2)


@pytest.fixture(scope="module")
def elasticsearch(servers, port):
    """A way to the real one that can be cut."""
    proxy = Proxy(port, int(servers.elasticsearch_url.rpartition(":")[2]))
    yield proxy
    proxy.heal()
    proxy.close()


def serve(**settings):
    sources = Sources(Settings(metrics_port=65_000, **settings), OWN)
    return serving(application(sources, OWN, Writes(sources), "ada"))


def test_a_view_dims_while_elasticsearch_is_away_and_comes_back(browser, console, servers, elasticsearch, port):
    with serve(kafka_bootstrap=servers.bootstrap, elasticsearch_url=f"http://127.0.0.1:{port}") as address:
        visitors = {path: Visitor(browser, address) for path in OF_ELASTICSEARCH}
        for path, said in OF_ELASTICSEARCH.items():
            expect(visitors[path].open(path).locator("#live")).to_contain_text(said)
        other = Visitor(browser, address)
        other.open("/control")
        elasticsearch.cut()
        for path, said in OF_ELASTICSEARCH.items():
            page = visitors[path].page
            expect(page.locator("#down")).to_contain_text("Elasticsearch: has not answered within 2 s")
            expect(page.locator("#live")).to_have_css("opacity", "0.55")
            expect(page.locator("#live")).to_contain_text(said)
        for path, said in OF_KAFKA.items():
            expect(other.open(path).locator("#live")).to_contain_text(said)
        late = Visitor(browser, address)
        late.page.goto(f"{address}/incidents/i1")
        expect(late.page.locator("#live")).to_contain_text("Elasticsearch: has not answered within 2 s")
        elasticsearch.heal()
        for visitor in visitors.values():
            expect(visitor.page.locator("#down")).to_be_hidden()
            expect(visitor.page.locator("#live")).to_have_css("opacity", "1")
        expect(late.page.locator("#live")).to_contain_text("Likely causes")
        for visitor in (*visitors.values(), other, late):
            assert [one for one in visitor.faults if "503" not in one] == []
            visitor.close()


def test_a_view_whose_source_was_slow_once_comes_back_though_nothing_has_changed(
    browser, console, servers, monkeypatch
):
    with serve(kafka_bootstrap=servers.bootstrap, elasticsearch_url=servers.elasticsearch_url) as address:
        visitor, answers = Visitor(browser, address), threading.Event()
        visitor.open("/control")
        monkeypatch.setattr(UnchangedTopics, "read", lambda self, topic, read: answers.wait(60) and read())
        visitor.page.reload()
        expect(visitor.page.locator("#live")).to_contain_text("Kafka: has not answered within 2 s")
        answers.set()
        expect(visitor.page.locator("#live")).to_contain_text("ada")
        visitor.close()


def test_a_view_without_kafka_says_so_and_those_of_elasticsearch_go_on(browser, console, servers, port):
    with serve(kafka_bootstrap=f"127.0.0.1:{port + 1}", elasticsearch_url=servers.elasticsearch_url) as address:
        visitor = Visitor(browser, address)
        for path in OF_KAFKA:
            visitor.page.goto(address + path)
            expect(visitor.page.locator("#live")).to_contain_text("Kafka: ")
        for path in ("/fleet?span=1h", "/fleet/vm-1?span=1h", "/incidents/i1", "/rejected/d1"):
            visitor.page.goto(address + path)
            expect(visitor.page.locator("h1")).not_to_be_empty()
        expect(visitor.page.locator("#live")).to_contain_text("The original record can't be shown: Kafka: ")
        visitor.page.goto(f"{address}/chain")
        expect(visitor.page.locator("#live")).to_contain_text("Kafka: ")
        expect(visitor.page.locator("tr.wrong, tr.dim").first).to_contain_text("enrichment")
        visitor.close()
