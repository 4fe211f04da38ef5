"""Servers and jobs that die while people look at the running chain: what needs them says so, and comes back."""

from playwright.sync_api import expect

from tests.console.browser import Visitor
from tests.waiting import until

BACK_SECONDS = 300.0
OF_ELASTICSEARCH = ("/fleet?span=1h", "/fleet/vm-17?span=15m", "/incidents", "/rejected")
OF_KAFKA = ("/control", "/generations")


def test_a_job_that_is_killed_is_red_with_its_runbook(browser, house, report):
    chain, machine = Visitor(browser, house.address), Visitor(browser, house.address)
    row = chain.open("/chain").locator("#q-detector")
    machine.open("/fleet/vm-17?span=15m")
    detector = house.jobs["detector"]
    detector.kill()
    expect(row.locator(".problem")).to_contain_text("does not answer", timeout=60_000)
    assert row.locator(".problem a").first.get_attribute("href").endswith("runbooks.md#kappajobdown")
    expect(chain.page.locator("#q-statistics .problem")).to_be_empty()
    report.checked("chain", "a killed job is red, and leads to its runbook; the others are not")
    expect(machine.page.locator("#live")).to_contain_text("detector: ", timeout=60_000)
    expect(machine.page.locator("#charts .plot canvas").first).to_be_visible()
    report.checked("machine", "without the detector it says so, and shows the rest")
    detector.start()
    expect(row.locator(".problem")).to_be_empty(timeout=BACK_SECONDS * 1000)
    for visitor in (chain, machine):
        assert visitor.faults == []
        visitor.close()


def test_views_of_a_server_that_is_killed_dim_and_come_back(browser, house, report):
    visitors = {path: Visitor(browser, house.address) for path in (*OF_ELASTICSEARCH, *OF_KAFKA, "/chain")}
    for path, visitor in visitors.items():
        visitor.open(path)
    house.servers.elasticsearch.kill()
    for path in OF_ELASTICSEARCH:
        page = visitors[path].page
        expect(page.locator("#down")).to_contain_text("Elasticsearch: ", timeout=60_000)
        expect(page.locator("#live")).to_have_css("opacity", "0.55")
    for path in OF_KAFKA:
        expect(visitors[path].page.locator("#down")).to_be_hidden()
    for broker in house.servers.kafka:
        broker.kill()
    for path in OF_KAFKA:
        expect(visitors[path].page.locator("#down")).to_contain_text("Kafka: ", timeout=60_000)
    expect(visitors["/chain"].page.locator(".down[role=alert]:visible")).to_contain_text("Kafka", timeout=60_000)
    for view in ("fleet", "machine", "incidents", "rejected", "control", "generations", "chain"):
        report.checked(view, "without its server it dims, and says which one")
    house.servers.up()
    for path, visitor in visitors.items():
        down = visitor.page.locator(".down[role=alert]:visible")

        def is_back(down=down):
            for job in house.jobs.values():
                job.tend()  # a job without its broker ends, and is started again as an orchestrator does
            return down.count() == 0

        until(is_back, BACK_SECONDS, f"{path} is back")
        assert [one for one in visitor.faults if "503" not in one] == [], path
        visitor.close()
    report.checked("chain", "all views come back with their servers")
