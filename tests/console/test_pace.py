"""How long a request takes while the chain runs, how soon what is new is on a page, how much memory the console has."""

import json
import statistics
import time
import urllib.request
import uuid

from playwright.sync_api import expect

from connectors.sinks.elasticsearch import Action, ElasticsearchSink
from connectors.sinks.elasticsearch_errors import Retry
from tests.console.browser import Visitor
from tests.console.house import memory_mb
from tests.waiting import until

REQUESTS = 20
FRESH_SECONDS = 2.0
MOST_MEMORY = 200.0  # MB
OF_PICTURES = ("who", "not-found", "fleet-hypervisors", "novelty", "series", "logs", "hostile")


def test_requests_of_a_console_that_reads_everything_anew(house, report):
    house.unshared.start()
    until(lambda: house.unshared.said("console: http"), 60, "the console answers")
    for name, path in house.places().items():
        if name not in OF_PICTURES:
            report.p95_ms[name] = round(_p95(house.unshared_address + path), 1)
    house.unshared.stop()


def _p95(address):
    took = []
    for _ in range(REQUESTS):
        begun = time.perf_counter()
        with urllib.request.urlopen(address) as answer:
            answer.read()
        took.append((time.perf_counter() - begun) * 1000)
    return statistics.quantiles(took, n=20)[-1]


def test_memory_of_the_console_that_has_served_all_of_this(house, report):
    report.facts["memory_mb"] = round(memory_mb(house.console), 1)
    assert report.facts["memory_mb"] <= MOST_MEMORY


def test_what_is_new_is_on_an_open_page_within_two_seconds(browser, house, report):
    """From the moment at which Elasticsearch shows a document; the median of five, as other work goes on beside it."""
    visitor, took, names = Visitor(browser, house.address), [], []
    page = visitor.open("/rejected")
    client = house.elasticsearch()
    sink = ElasticsearchSink(client, Retry(lambda *_: None))
    (index,) = [one for one in client.indices.get_alias(name="kappa-rejected") if "anchor" not in one][-1:]
    for _ in range(5):
        names.append(name := f"fresh-{uuid.uuid4().hex[:8]}")
        letter = {
            "@timestamp": int(time.time() * 1000),
            "id": name,
            "stage": "enrichment",
            "code": "fresh",
            "reason": name,
        }
        assert sink.write([Action(index, name, letter)]) == {}
        client.indices.refresh(index=index)
        begun = time.monotonic()
        expect(page.locator(f"#d-{name}")).to_be_visible()
        took.append(time.monotonic() - begun)
    visitor.close()
    report.facts["fresh_seconds"] = [round(one, 2) for one in took]
    assert statistics.median(took) <= FRESH_SECONDS
    for name in names:
        client.delete(index=index, id=name)


def test_each_view_is_json_as_its_description_says(house):
    with urllib.request.urlopen(f"{house.address}/api/v1/openapi.json") as answer:
        described = json.loads(answer.read())["paths"]
    plain = [path for path in described if "{" not in path]
    for path in plain:
        with urllib.request.urlopen(house.address + path) as answer:
            assert isinstance(json.loads(answer.read()), dict), path
