import asyncio
import time

import pytest

from ops.console import pulse as pulse_module
from ops.console.feeds import CLOCK, FEEDS, signs, sources_of
from ops.console.pulse import Pulse
from ops.console.stream import CHANGED, SILENT, Streams
from ops.console.views.table import PAGES


@pytest.fixture
def fast(monkeypatch):
    monkeypatch.setattr(pulse_module, "PERIOD_SECONDS", 0.005)
    monkeypatch.setattr(pulse_module, "KEEP_ALIVE_SECONDS", 0.3)


class Signs:
    """The signs of two feeds; how often they were looked at, and which changes were told of."""

    def __init__(self):
        self.now = {"novelties": 1, "incidents": 1}
        self.looks, self.told = 0, []

    def look(self):
        self.looks += 1
        return dict(self.now)


def test_a_page_is_told_of_its_feeds_only(fast):
    async def run():
        known = Signs()
        pulse = Pulse(known.look, known.told.append)
        mine, other = pulse.changes(["novelties"]), pulse.changes(["incidents"])
        assert [await anext(one) for one in (mine, other)] == [False, False]
        known.now["novelties"] = 2
        found = [await anext(one) for one in (mine, other)]
        for one in (mine, other):
            await one.aclose()
        return found, known.told

    assert asyncio.run(run()) == ([True, False], [["novelties"], ["incidents"], ["novelties"]])


def test_what_a_page_reads_once_it_listens_is_no_older_than_the_first_look(fast):
    async def run():
        known = Signs()
        changes = Pulse(known.look, known.told.append).changes(["novelties"])
        await anext(changes)
        assert (known.looks, known.told) == (1, [["novelties"]])
        known.now["novelties"] = 2  # after the first look: the page is told
        found = await anext(changes)
        await changes.aclose()
        return found

    assert asyncio.run(run())


def test_a_change_between_two_events_is_told_by_the_next_one(fast):
    async def run():
        known = Signs()
        changes = Pulse(known.look, known.told.append).changes(["novelties"])
        await anext(changes)
        known.now["novelties"] = 2
        assert await anext(changes)
        known.now["novelties"] = 3
        while len(known.told) < 3:
            await asyncio.sleep(0.01)
        found = await anext(changes)
        await changes.aclose()
        return found

    assert asyncio.run(run())


def test_nobody_looks_when_no_page_is_open(fast):
    async def run():
        known = Signs()
        changes = Pulse(known.look, known.told.append).changes(["novelties"])
        assert not await anext(changes)
        await changes.aclose()
        await asyncio.sleep(0.05)
        before = known.looks
        await asyncio.sleep(0.1)
        return known.looks - before

    assert asyncio.run(run()) == 0


def test_a_source_that_goes_down_is_a_change_of_its_feeds(sources):
    up = signs(sources)
    sources.down = {"Elasticsearch"}
    down = signs(sources)
    changed = {feed for feed in up if feed != CLOCK and up[feed] != down[feed]}
    assert changed == {"novelties", "incidents", "rejected", "statistics"}
    assert (sources_of(changed), sources_of(["control"])) == (["Elasticsearch"], ["Kafka"])


def test_every_feed_of_a_page_is_known():
    assert {feed for page in PAGES for feed in page.feeds} <= {*FEEDS}


def test_a_stream_has_an_event_for_each_change():
    class Changes:
        async def changes(self, feeds):
            assert feeds == ["novelties"]
            for changed in (False, True, False):
                yield changed

    async def run():
        return [event async for event in Streams(Changes())._events(["novelties"])]

    begun = time.monotonic()
    assert asyncio.run(run()) == [SILENT, CHANGED, SILENT]
    assert time.monotonic() - begun >= 1


@pytest.mark.parametrize("query", ["", "?feeds=", "?feeds=novelties,none"])
def test_a_feed_that_is_not_there_is_refused_with_those_that_there_are(browser, query):
    answer = browser.get(f"/stream{query}")
    assert (answer.status_code, "there are novelties, incidents" in answer.text) == (400, True)


def test_a_page_says_which_feeds_it_shows(browser):
    assert '<body data-feeds="novelties">' in browser.get("/fleet").text
