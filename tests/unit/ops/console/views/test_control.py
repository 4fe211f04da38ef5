import pytest

from tests.unit.ops.console.sources import ESCAPED, MARKUP
from tests.unit.ops.console.views.test_incidents import hits

DAY = 86_400_000
NOW = 1_790_000_000_000
RULE = {"action": "suppress", "rule": "aa11", "machine": "vm-*", "series": "cpu", "by": "ada", "time": NOW}
OTHER = {"action": "suppress", "rule": "bb22", "machine": "*", "size": 2.0, "by": "bob", "time": NOW + 1}
OVER = {"action": "allow", "rule": "aa11", "machine": "*", "by": "bob", "time": NOW + 2}


def novelty(machine, observed, verdict="anomaly", series="cpu"):
    about = {"machine": machine, "verdict": verdict, "series": series, "kind": "metric", "text": "so"}
    return about | {"started": NOW, "score": 9.0, "observed": observed, "expected": 10.0}


@pytest.fixture
def past(sources):
    found = [novelty("vm-1", 12.0), novelty("vm-1", 30.0), novelty("vm-2", 2.0), novelty("vm-1", 1.0, "silence", "")]
    listed = [(f"n{number}", one) for number, one in enumerate(found)]
    sources.found = {"novelties": hits(*listed, aggregations={"newest": {"value": float(NOW)}})}


def test_rules_hold_until_they_are_allowed_again(browser, sources):
    sources.controls = [RULE, OTHER, OVER]
    view = browser.get("/api/v1/control").json()
    assert [(one["rule"], one["by"]) for one in view["rules"]] == [("bb22", "bob")]
    page = browser.get("/control").text
    assert page.count('action="/act/allow"') == 1
    assert 'href="/control/suppress?machine=%2A&amp;size=2.0"' in page


def test_the_history_has_the_newest_first_and_is_filtered_by_who_and_what(browser, sources):
    sources.controls = [RULE, OTHER, OVER]
    view = browser.get("/api/v1/control").json()
    assert [(one["action"], one["rule"]) for one in view["history"]] == [
        ("allow", "aa11"),
        ("suppress", "bb22"),
        ("suppress", "aa11"),
    ]
    assert [one["rule"] for one in browser.get("/api/v1/control?by=bob&action=suppress").json()["history"]] == ["bb22"]


@pytest.mark.parametrize(
    ("rule", "hidden"),
    [
        ("machine=vm-1", ["n0", "n1", "n3"]),
        ("machine=vm-1&series=cpu", ["n0", "n1"]),
        ("direction=below", ["n2"]),
        ("machine=vm-1&direction=above&size=5", ["n0"]),
        ("machine=none", []),
    ],
)
def test_a_rule_is_tried_on_the_last_weeks_novelties(browser, sources, past, rule, hidden):
    view = browser.get(f"/api/v1/control/suppress?{rule}").json()
    assert ([one["id"] for one in view["novelties"]], view["hidden"], view["of"]) == (hidden, len(hidden), 4)
    assert sources.searches[-1][1]["query"] == {"range": {"started": {"gte": NOW - 7 * DAY}}}
    assert f"<strong>{len(hidden)}</strong> of the 4 novelties" in browser.get(f"/control/suppress?{rule}").text


def test_a_rule_that_was_previewed_is_made_by_the_form(browser, past):
    page = browser.get("/control/suppress?machine=vm-1&size=5").text
    assert 'action="/act/suppress"' in page
    assert '<input type="hidden" name="machine" value="vm-1">' in page
    assert '<input type="hidden" name="size" value="5.0">' in page


def test_without_a_rule_there_is_nothing_to_make(browser, past):
    page = browser.get("/control/suppress").text
    assert 'action="/act/suppress"' not in page
    assert browser.get("/api/v1/control/suppress").json()["rule"] is None


def test_novelties_without_values_are_no_match_of_a_rule_about_values(browser, sources):
    sources.found = {
        "novelties": hits(("n0", {"machine": "vm-1", "verdict": "anomaly"}), aggregations={"newest": {"value": 1.0}})
    }
    assert browser.get("/api/v1/control/suppress?direction=above").json()["hidden"] == 0


def test_a_size_that_is_no_number_is_refused(browser):
    answer = browser.get("/api/v1/control/suppress?size=big")
    assert (answer.status_code, answer.json()["error"].split(":")[0]) == (400, "size='big'")


def test_what_people_and_telemetry_say_is_escaped(browser, sources):
    sources.controls = [
        dict.fromkeys(("rule", "machine", "series", "by"), MARKUP) | {"action": "suppress", "time": NOW}
    ]
    sources.found = {
        "novelties": hits(
            ("n0", novelty("vm-1", 1.0) | {"text": MARKUP, "unit": MARKUP}), aggregations={"newest": {"value": 1.0}}
        )
    }
    for path in ("/control", "/control/suppress?machine=vm-1"):
        page = browser.get(path).text
        assert ESCAPED in page
        assert "<script>" not in page
