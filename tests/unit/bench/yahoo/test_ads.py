"""The events of the Yahoo benchmark: what is sent is what is counted, and follows from the seed."""

from collections import Counter

import numpy as np
import orjson
import pytest

from tests.bench.yahoo.ads import ADS_A_CAMPAIGN, CAMPAIGNS, DISORDER_MS, EVENT_TYPES, WINDOW_MS, Ads

START_MS = 1_700_000_003_000  # within a window


@pytest.fixture(scope="module")
def ads():
    return Ads(seed=5, start_ms=START_MS, rate=200, seconds=40)


@pytest.fixture(scope="module")
def sent(ads):
    """(Kafka timestamp, event) of each."""
    steps = [ads.render(number) for number in range(ads.steps)]
    return [(time, orjson.loads(value)) for times, values in steps for time, value in zip(times, values, strict=True)]


def test_there_are_as_many_events_as_rate_and_time_say_in_the_order_of_their_sending(ads, sent):
    times = [time for time, _ in sent]
    assert len(sent) == ads.events == 8_000
    assert times == sorted(times)
    assert (times[0], times[-1]) == (START_MS, START_MS + 40_000 - 5)


def test_an_event_is_as_the_benchmark_has_it(ads, sent):
    events = [event for _, event in sent]
    assert list(events[0]) == ["user_id", "page_id", "ad_id", "ad_type", "event_type", "event_time", "ip_address"]
    assert {event["event_type"] for event in events} == set(EVENT_TYPES)
    assert {event["ad_id"] for event in events} <= ads.campaign_of_ads().keys()
    late = [time - int(event["event_time"]) for time, event in sent]
    assert min(late) >= 0
    assert max(late) <= DISORDER_MS


def test_each_campaign_has_its_ads(ads):
    table = ads.campaign_of_ads()
    assert Counter(table.values()) == dict.fromkeys(ads.campaigns, ADS_A_CAMPAIGN)
    assert len(table) == CAMPAIGNS * ADS_A_CAMPAIGN


def test_the_truth_is_what_one_counts_in_the_events(ads, sent):
    table, counted = ads.campaign_of_ads(), Counter()
    for _, event in sent:
        start = int(event["event_time"]) // WINDOW_MS * WINDOW_MS
        if event["event_type"] == "view" and ads.is_compared(start):
            counted[table[event["ad_id"]], start] += 1
    assert ads.truth() == counted


def test_no_window_is_compared_that_the_end_of_the_load_could_leave_open(ads):
    assert max(start for _, start in ads.truth()) + WINDOW_MS <= START_MS + 30_000
    assert ads.is_compared(START_MS + 20_000)
    assert not ads.is_compared(START_MS + 20_001)


def test_the_same_seed_gives_the_same_and_another_one_other_events():
    one, same, other = (Ads(seed, START_MS, 1_000, 1) for seed in (1, 1, 2))
    assert one.render(3) == same.render(3)
    assert one.render(3) != other.render(3)
    assert one.campaigns != other.campaigns
    assert not np.array_equal(one.draw(3).ad, one.draw(4).ad)
