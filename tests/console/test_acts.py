"""What people do in the console's pages, until its effect is there: in the chain, and in the page."""

import time

from playwright.sync_api import expect

from infra.contract.watermarks import is_watermark
from jobs.enrichment.inventory import newest_first, read_facts
from ops.replay.registry import Registry
from ops.replay.run import running
from tests.console.house import UNIT
from tests.console.person import WHO, named, said_last
from tests.waiting import until

EFFECT_SECONDS = 300.0
COMMAND_SECONDS = 600.0  # of a command that starts Spark


def test_a_rejected_record_arrives_after_its_cause_is_mended_and_it_is_retried(visitor, house, report):
    house.send_line(machine="vm-01", name="retried", value=4711.0, unit=UNIT)
    page = visitor.open("/rejected?code=unit_too_long")
    expect(page.locator("tr[id^='d-']")).to_have_count(1, timeout=EFFECT_SECONDS * 1000)
    enrichment = house.jobs["enrichment"]
    enrichment.stop()
    enrichment.extra = {"KAPPA_ENRICHMENT_UNIT_BYTES": "200"}
    enrichment.start()
    named(visitor)
    page = visitor.open("/rejected?code=unit_too_long")
    page.locator("tr[id^='d-'] input[type=checkbox]").check()
    page.get_by_role("button", name="Retry the chosen ones").click()
    begun = time.monotonic()
    expect(page.locator(".notice")).to_contain_text("Retried: 1 sent; 0 were sent before")
    until(lambda: "retried" in str(_units(house)), EFFECT_SECONDS, "the record is in events", pause=5)
    report.acted("retry", "the rejected record is in events", time.monotonic() - begun)


def _units(house):
    return [one for one in house.records("events") if not is_watermark(one) and UNIT in str(one)]


def test_a_retired_machine_is_gone(visitor, house, report):
    named(visitor)
    page = visitor.open("/fleet/vm-new")
    page.locator("details.panel summary").click()
    page.get_by_label("Type its name").fill("vm-new")
    page.get_by_role("button", name="Retire it now").click()
    begun = time.monotonic()
    expect(page.locator(".notice")).to_contain_text("vm-new is retired")
    fact, *_ = newest_first(read_facts(house.settings.kafka_bootstrap, "inventory")["vm-new"])
    assert fact["valid_to"] is not None
    report.acted("retire", "the inventory says until when it was there", time.monotonic() - begun)
    said = said_last(visitor)
    assert (said["Who"], said["Action"], said["Machines"]) == (WHO, "retire", "vm-new")


def test_a_savepoint_is_taken(visitor, house, report):
    named(visitor)
    page = visitor.open("/savepoints")
    page.get_by_label("Name").fill("monday")
    page.get_by_label("Job").select_option("statistics")
    page.get_by_role("button", name="Take it").click()
    begun = time.monotonic()
    done = page.locator("tr", has_text="savepoint create monday")
    expect(done).to_contain_text("done", timeout=COMMAND_SECONDS * 1000)

    def listed():
        visitor.open("/savepoints")
        return [row for row in visitor.rows() if row.get("Name") == "monday"]

    (row,) = until(listed, 60, "the savepoint is listed", pause=5)
    assert row["Jobs"] == "statistics"
    report.acted("savepoint", "it is listed", time.monotonic() - begun)
    report.checked("savepoints", "the one that was taken")
    listed_row = page.locator("tr", has=page.get_by_role("rowheader", name="monday", exact=True))
    listed_row.get_by_role("button", name="Verify").click()
    verified = page.locator("tr", has_text="savepoint verify monday")
    expect(verified).to_contain_text("done", timeout=COMMAND_SECONDS * 1000)
    listed_row.get_by_text("Delete…").click()
    listed_row.get_by_label("Type its name").fill("monday")
    listed_row.get_by_role("button", name="Delete monday").click()
    deleted = page.locator("tr", has_text="savepoint delete monday")
    expect(deleted).to_contain_text("done", timeout=COMMAND_SECONDS * 1000)
    until(lambda: not listed(), 60, "the savepoint is no longer listed", pause=5)
    report.acted("savepoint delete", "it is no longer listed", time.monotonic() - begun)


def test_readers_are_switched_to_a_replay_and_back(visitor, house, report):
    """Start, compare, promote, roll back, drop; all of it in the page."""
    named(visitor)
    page = visitor.open("/generations")
    page.get_by_text("Start a replay…").click()
    page.get_by_label("Name", exact=True).fill("v2")
    page.get_by_label("Settings").fill("detector.alarms_per_day=50")
    page.get_by_role("button", name="Start", exact=True).click()
    begun = time.monotonic()
    row = page.locator("tr#g-v2")
    expect(row).to_contain_text("detector.alarms_per_day=50", timeout=COMMAND_SECONDS * 1000)
    expect(row).to_contain_text("caught up", timeout=COMMAND_SECONDS * 1000)
    report.acted("start", "the replay has caught up", time.monotonic() - begun)
    report.checked("generations", "a replay with its settings, its progress and its state")

    row.get_by_role("button", name="Compare with live").click()
    operation = page.locator("tr", has_text="replay diff live v2")
    operation.get_by_role("link").click(timeout=COMMAND_SECONDS * 1000)
    compared = {row["Topic"]: row for row in visitor.rows()}
    assert {"novelties", "incidents"} <= compared.keys()
    report.checked("difference", "as many records of each topic as the comparison has counted")

    page = visitor.open("/generations")
    row.get_by_text("Promote…").click()
    begun = time.monotonic()
    row.get_by_role("button", name="Promote v2").click()
    expect(page.locator("h1 .tag")).to_have_text("v2", timeout=COMMAND_SECONDS * 1000)
    until(lambda: _generation_of_readers(house) == {"v2"}, COMMAND_SECONDS, "the aliases are switched", pause=2)
    report.acted("promote", "readers see the documents of v2", time.monotonic() - begun)
    visitor.open("/fleet?span=6h")
    expect(page.locator("#heat")).to_contain_text("vm-17")

    page = visitor.open("/generations")
    expect(page.locator("tr", has_text="replay promote v2")).to_contain_text("done", timeout=COMMAND_SECONDS * 1000)
    begun = time.monotonic()
    page.get_by_role("button", name="Roll back to live").click()
    until(lambda: _generation_of_readers(house) == {"live"}, COMMAND_SECONDS, "the aliases are back", pause=2)
    report.acted("rollback", "readers see the documents of live", time.monotonic() - begun)

    house.end_replay("v2")
    page = visitor.open("/generations")
    expect(page.locator("tr", has_text="replay rollback")).to_contain_text("done", timeout=COMMAND_SECONDS * 1000)
    row.get_by_text("Drop…").click()
    row.get_by_label("Type its name").fill("v2")
    begun = time.monotonic()
    row.get_by_role("button", name="Drop v2").click()
    expect(row).to_contain_text("dropped", timeout=COMMAND_SECONDS * 1000)
    assert running(house.settings.model_copy(update={"generation": "v2"})) is None
    assert Registry.read(house.settings.kafka_bootstrap).names == ["live"]
    report.acted("drop", "the generation is dropped", time.monotonic() - begun)


def _generation_of_readers(house):
    names = house.elasticsearch().indices.get_alias(name="kappa-novelties")
    return {name.partition(".")[0].removeprefix("kappa-novelties-") for name in names}
