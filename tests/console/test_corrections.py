"""What people tell the detector in the pages, until it has done so. It comes first: what is open may end by itself."""

import time

from playwright.sync_api import expect

from tests.console.person import WHO, named, said_last
from tests.waiting import until

EFFECT_SECONDS = 300.0


def open_novelty(house, machine):
    """An open novelty of a machine, as it is indexed."""
    query = {"bool": {"filter": [{"term": {"machine": machine}}], "must_not": [{"exists": {"field": "ended"}}]}}
    return next(iter(house.documents("novelties", query=query)), None)


def document(house, kind, identity):
    (found,) = house.documents(kind, query={"ids": {"values": [identity]}})
    return found


def test_people_say_their_name(visitor, report):
    page = visitor.open("/chain")
    page.locator(".person a").click()
    page.get_by_label("Name").fill(WHO)
    page.get_by_role("button", name="Act under this name").click()
    page.wait_for_url("**/chain")
    expect(page.locator(".person")).to_contain_text(f"{WHO} operator")
    report.checked("who", "the name that was given")


def test_feedback_ends_a_novelty(visitor, house, report):
    named(visitor)
    novelty = until(lambda: open_novelty(house, "vm-17"), EFFECT_SECONDS, "something is open on vm-17")
    page = visitor.open(f"/fleet/vm-17?novelty={novelty['_id']}")
    row = page.locator(f"tr#n-{novelty['_id']}")
    expect(row).to_contain_text("open")
    row.get_by_role("button", name="Not anomalous").click()
    begun = time.monotonic()
    expect(page.locator(".notice")).to_contain_text("this is normal on vm-17")
    until(lambda: document(house, "novelties", novelty["_id"]).get("ended"), EFFECT_SECONDS, "the novelty ends")
    ended = document(house, "novelties", novelty["_id"])
    assert (ended["feedback"], f"{WHO} says that this is normal" in ended["text"]) == ("not-anomalous", True)
    expect(row).to_contain_text("not anomalous", timeout=30_000)
    report.acted("feedback", "the novelty has ended, and says who said so", time.monotonic() - begun)
    said = said_last(visitor)
    assert (said["Who"], said["Action"], said["Machines"]) == (WHO, "feedback", "vm-17")
    report.checked("control", "the history has who, what and where")


def test_a_rule_ends_what_it_matches_as_it_was_previewed(visitor, house, report):
    named(visitor)
    novelty = until(lambda: open_novelty(house, "vm-21"), EFFECT_SECONDS, "vm-21 is silent")
    page = visitor.open("/control/suppress?machine=vm-21")
    known = [one for one in house.documents("novelties") if one["machine"] == "vm-21"]
    expect(page.locator(".verdict strong")).to_have_text(str(len(known)))
    report.checked("suppress", "the preview has as many novelties as the rule would have hidden")
    page.get_by_role("button", name="Suppress these from now on").click()
    begun = time.monotonic()
    expect(page.locator(".notice")).to_contain_text("holds.")
    until(lambda: document(house, "novelties", novelty["_id"]).get("ended"), EFFECT_SECONDS, "the silence ends")
    assert "suppressed by rule" in document(house, "novelties", novelty["_id"])["text"]
    report.acted("suppress", "the novelty that the rule matches has ended", time.monotonic() - begun)
    page = visitor.open("/control")
    page.get_by_role("button", name="Allow again").click()
    expect(page.locator(".notice")).to_contain_text("is over.")
    report.acted("allow", "the rule is over", 0)


def test_a_series_is_learned_anew(visitor, house, report):
    named(visitor)
    page = visitor.open("/control")
    form = page.locator("#reset form")
    form.get_by_label("Machines").fill("vm-09")
    form.get_by_label("Series").fill("system.memory*")
    form.get_by_role("button", name="Reset").click()
    expect(page.locator(".notice")).to_contain_text("learned anew")
    said = said_last(visitor)
    assert (said["Action"], said["Machines"], said["Series"]) == ("reset", "vm-09", "system.memory*")
    report.acted("reset", "it is in the history that a replay repeats", 0)
