import orjson
import pytest

from infra.contract.topics import load_topics
from jobs.table import JOBS
from ops.replay.diff import Difference, diff, differing_topics
from ops.replay.registry import CHAIN

TOPICS = {"novelties": ("novelties", "novelties.v2")}


def novelty(machine: str, time: int = 10, **fields) -> dict:
    return {
        "id": f"id-{machine}",
        "phase": "start",
        "machine": machine,
        "time_unix_nano": time,
        "verdict": "anomaly",
    } | fields


@pytest.fixture
def compare():
    """The diff of two lists of records; a record's timestamp is its time."""

    def compare(first, second, topics=TOPICS, **bounds):
        held = dict(zip(next(iter(topics.values())), (first, second), strict=True))
        return diff(
            topics, lambda topic: [(r.get("time_unix_nano", 0), orjson.dumps(r)) for r in held[topic]], **bounds
        )

    return compare


def test_the_same_records_in_another_order_are_no_difference(compare):
    found = compare([novelty("a"), novelty("b")], [novelty("b"), novelty("a")])
    assert found.is_empty
    assert found.compared == {"novelties": (2, 2)}


def test_each_kind_of_difference_is_named(compare):
    found = compare(
        [novelty("only-here"), novelty("both", score=1.0)], [novelty("both", score=2.0), novelty("only-there")]
    )
    assert found.differences == [
        Difference("novelties", novelty("both", score=1.0), novelty("both", score=2.0)),
        Difference("novelties", novelty("only-here"), None),
        Difference("novelties", None, novelty("only-there")),
    ]
    assert [d.fields for d in found.differences] == [("score",), (), ()]
    assert found.summary() == {
        ("novelties", "changed", "both", "anomaly"): 1,
        ("novelties", "only in first", "only-here", "anomaly"): 1,
        ("novelties", "only in second", "only-there", "anomaly"): 1,
    }


def test_a_record_that_is_there_twice_differs_from_one_that_is_there_once(compare):
    assert compare([novelty("a"), novelty("a")], [novelty("a")]).differences == [
        Difference("novelties", novelty("a"), None)
    ]


def test_watermarks_and_places_in_derived_topics_are_the_paces_business(compare):
    one = {"id": "w", "machine": "a", "source": {"topic": "events", "partition": 0, "first_offset": 1}}
    other = {"id": "w", "machine": "a", "source": {"topic": "events.v2", "partition": 0, "first_offset": 7}}
    topics = {"statistics": ("statistics", "statistics.v2"), "events": ("events", "events.v2")}
    held = {
        "statistics": [one, {"watermark_unix_nano": 1}],
        "statistics.v2": [other],
        "events": [{"watermark_unix_nano": 1}],
        "events.v2": [],
    }
    assert diff(topics, lambda topic: [(0, orjson.dumps(r)) for r in held[topic]]).is_empty


def test_a_place_in_a_shared_topic_counts(compare):
    one, other = ({"id": "e", "source": {"topic": "telemetry.lines", "offset": offset}} for offset in (1, 2))
    assert [d.fields for d in compare([one], [other]).differences] == [("source",)]


def test_only_the_given_time_is_compared(compare):
    found = compare([novelty("a", 5), novelty("b", 20)], [novelty("c", 21)], since_ms=6, until_ms=20)
    assert found.differences == [Difference("novelties", novelty("b", 20), None)]


def test_only_what_both_write_as_a_whole_is_compared():
    """The new generation's indexer writes a part of `events.rejected`; enrichment, which it lacks, the other."""
    live, jobs = load_topics(), ("detector", "incidents", "archive", "indexer")
    second = JOBS.topics_in(live, "v2", jobs)
    assert differing_topics(live, second, jobs) == {name: (name, f"{name}.v2") for name in ("novelties", "incidents")}
    whole = differing_topics(live, JOBS.topics_in(live, "v3"), CHAIN)
    assert whole.keys() == {"events", "events.late", "events.rejected", "statistics", "novelties", "incidents"}


def events(offset: int, *values: float, **labels) -> dict:
    times = [10_000_000 * round(value) for value in values]
    return {
        "id": f"telemetry.lines-0-{offset}-0",
        "machine": "a",
        "kind": "metric",
        "inventory": {"known": False},
        "source": {"topic": "telemetry.lines", "partition": 0, "offset": offset},
        "events": {"time_unix_nano": times, "value": list(values), **(labels or {"series": ["cpu"] * len(values)})},
    }


def test_events_are_compared_one_by_one_however_they_were_gathered(compare):
    topics = {"events": ("events", "events.v2")}
    gathered = events(0, 1, 2, 3, labels=[0, 0, 0], series=["cpu"])
    found = compare([gathered], [events(2, 3), events(0, 1, 2)], topics)
    assert found.is_empty
    assert found.compared == {"events": (3, 3)}

    [difference] = compare([gathered], [events(0, 1, 2), events(2, 3, series=["load"])], topics).differences[:1]
    assert (difference.kind, difference.one["value"], difference.one["series"]) == ("only in first", 3, "cpu")
    assert [d.kind for d in compare([gathered], [events(0, 1, 3)], topics).differences] == ["only in first"]
    # By their own times: a record may reach over the bounds.
    assert compare([gathered], [events(1, 2)], topics, since_ms=20, until_ms=20).compared == {"events": (1, 1)}


def test_the_share_of_a_topic_counts_a_changed_record_once(compare):
    found = compare([novelty("a"), novelty("b"), novelty("c")], [novelty("a"), novelty("b", score=2.0), novelty("c")])
    assert found.shares == {"novelties": pytest.approx(1 / 3)}
    assert compare([novelty("a")], [novelty("a"), novelty("b")]).shares == {"novelties": 0.5}
    assert compare([], []).shares == {}
