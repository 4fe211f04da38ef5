from ops.replay.registry import CHAIN, Generation, Promotion, Registry
from tests.unit.ops.console.sources import ESCAPED, MARKUP

V2 = Generation(name="v2", base="live", jobs=CHAIN, ref="v0.3.0", settings={"detector.alarms_per_day": "3"})
V1 = Generation(name="v1", base="live", jobs=("detector",), state="dropped")


def test_each_generation_has_its_plan_and_state(browser, sources):
    sources.generations = Registry({"v1": V1, "v2": V2}, Promotion(generation="v2", previous="live"))
    view = browser.get("/api/v1/generations").json()
    assert (view["promoted"], view["previous"]) == ("v2", "live")
    states = [(one["name"], one["state"], one["is_promoted"]) for one in view["generations"]]
    assert states == [("live", "caught up", False), ("v1", "dropped", False), ("v2", "replaying", True)]
    page = browser.get("/generations").text
    assert "detector.alarms_per_day=3" in page
    assert "v0.3.0" in page
    assert 'class="dim">\n    <th scope="row">v1' in page


def test_without_a_plan_there_is_the_live_one(browser):
    (live,) = browser.get("/api/v1/generations").json()["generations"]
    assert (live["name"], live["is_promoted"], live["base"]) == ("live", True, None)


def test_a_record_that_cannot_be_used_is_said_and_escaped(browser, sources):
    sources.generations = Registry(refused={"v9": MARKUP})
    page = browser.get("/generations").text
    assert "<strong>v9</strong>" in page
    assert ESCAPED in page
    assert "<script>" not in page


def test_the_progress_of_a_replay_is_shown_with_the_time_that_it_takes(browser, sources):
    sources.generations = Registry({"v2": V2})
    sources.paces = {"v2": {"done": 300, "left": 700, "behind": 12, "reached": 1_790_000_000_000, "seconds": 95.0}}
    page = browser.get("/generations").text
    assert "300 of 1,000 records, 95 s left; followers 12 behind; event time 2026-09-21 14:13:20" in page
    assert '<meter min="0" max="1000" value="300"' in page


CHANGED = {
    "topic": "novelties",
    "kind": "changed",
    "fields": ["score"],
    "first": {"id": "n1", "machine": "vm-1", "series": "cpu", "score": 9.0, "time_unix_nano": 1_790_000_000 * 10**9},
    "second": {"id": "n1", "machine": "vm-1", "series": "cpu", "score": 7.5, "time_unix_nano": 1_790_000_000 * 10**9},
}
MISSING = {"topic": "incidents", "kind": "only in second", "fields": [], "first": None, "second": {"id": MARKUP}}
FOUND = {
    "compared": {"novelties": [10, 11]},
    "summary": [{"topic": "novelties", "kind": "changed", "machine": "vm-1", "verdict": "anomaly", "records": 1}],
    "differences": [CHANGED, MISSING],
}


class Ended:
    """A command that has said something."""

    number, by, begun, ended, arguments = 4, "ada", 0.0, 1.0, ("replay", "diff", "live", "v2", "--json")
    command = "kappa replay diff live v2 --json"
    code = 1

    def text(self):
        return MARKUP

    def json(self):
        return FOUND


def test_a_comparison_has_the_fields_that_differ_side_by_side(browser, sources):
    sources.operations.find = lambda number: Ended()
    view = browser.get("/api/v1/generations/diff/4").json()
    changed, missing = view["differences"]
    assert changed["fields"] == [{"name": "score", "one": 9.0, "other": 7.5}]
    assert missing["fields"] == [{"name": "id", "one": None, "other": MARKUP}]
    page = browser.get("/generations/diff/4").text
    around = "from=1789996400000&amp;to=1790003600000&amp;series=cpu&amp;generation="
    assert f'/fleet/vm-1?{around}live">live</a>' in page
    assert f'/fleet/vm-1?{around}v2">v2</a>' in page
    assert ESCAPED in page
    assert "<script>" not in page


def test_what_was_begun_is_listed_with_who_and_what_it_says(browser, sources):
    sources.operations.every = lambda: [Ended()]
    page = browser.get("/generations").text
    assert "<code>kappa replay diff live v2 --json</code>" in page
    assert '<a href="/generations/diff/4">they differ</a>' in page
    Ended.arguments = ("replay", "promote", "v2")
    page = browser.get("/generations").text
    assert ESCAPED in page
    assert "<script>" not in page


def test_an_operation_that_is_not_known_is_said(browser):
    assert browser.get("/api/v1/generations/diff/9").status_code == 400


def test_savepoints_are_listed_whatever_their_manifest_has(browser, sources):
    old = {"name": "old", "job": "detector", "generation": "live"}
    new = {
        "name": MARKUP,
        "jobs": ["detector", "incidents"],
        "generation": "live",
        "taken": "2026-11-24",
        "bytes": 4711,
    }
    sources.saved = [old, new]
    assert [one["name"] for one in browser.get("/api/v1/savepoints").json()["savepoints"]] == [MARKUP, "old"]
    page = browser.get("/savepoints").text
    assert ESCAPED in page
    assert "detector, incidents" in page
    assert 'action="/act/savepoint"' in page


def test_a_machine_is_shown_as_a_generation_has_it(browser, sources):
    sources.by_id = {}
    browser.get("/fleet/vm-1?generation=v2")
    assert sources.shown == "v2"
