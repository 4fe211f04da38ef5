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
    assert '<tr class="dim">\n    <th scope="row">v1' in page


def test_without_a_plan_there_is_the_live_one(browser):
    (live,) = browser.get("/api/v1/generations").json()["generations"]
    assert (live["name"], live["is_promoted"], live["base"]) == ("live", True, None)


def test_a_record_that_cannot_be_used_is_said_and_escaped(browser, sources):
    sources.generations = Registry(refused={"v9": MARKUP})
    page = browser.get("/generations").text
    assert "<strong>v9</strong>" in page
    assert ESCAPED in page
    assert "<script>" not in page
