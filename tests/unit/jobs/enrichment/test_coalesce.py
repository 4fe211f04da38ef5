"""What is coalesced are the same events, whatever stands in their labels and whoever came first."""

from collections import Counter
from datetime import timedelta
from functools import cache
from random import Random

import orjson
import pytest

from connectors.prepared import Prepared
from infra.contract.columnar import to_rows
from infra.contract.topics import load_topics
from jobs.enrichment.coalesce import apart, coalesced
from jobs.enrichment.transform import enrichment
from tests.unit.jobs.enrichment.test_transform import NANO, NOW, RECEIVED, batch, fact, frames, line, rendered

TOPIC = "telemetry.lines"
TEXTS = ("", "a", "]", "],", '"', '\\"', "\\", "{", "}{", "é→𝄞", '],"series":[', "null", "\n\x00")


def scrape(*events, offset=0, machine="vm-1", after=0.0, **fields):
    """A row of a decoder, its events rendered, received `after` seconds."""
    received = {"topic": TOPIC, "partition": 0, "timestamp": RECEIVED + timedelta(seconds=after)}
    return rendered(*events, offset=offset, machine=machine) | received | fields


def point(series="cpu", value=1.0, time=NOW, **fields):
    return {"time_unix_nano": time, "value": value, "series": series, "name": series, "type": "gauge", **fields}


@cache
def enriching(coalesce):
    return enrichment(load_topics(), coalesce, prepare=Prepared)


@pytest.fixture
def run(spark):
    """Enriched rows of one task, each with its parsed record."""

    def enriched(*rows, coalesce=coalesced, facts=()):
        decoded, inventory = frames(spark, rows, facts)
        found = enriching(coalesce)(decoded.coalesce(1), inventory).collect()
        return [(row, orjson.loads(row.value)) for row in found]

    return enriched


def events_of(found):
    """Each event with what is said of it, and how often."""
    heads = ("machine", "kind", "resource", "inventory", "retried")
    return Counter(
        orjson.dumps([row.topic, row.key, [record.get(name) for name in heads], event], option=orjson.OPT_SORT_KEYS)
        for row, record in found
        for event in to_rows(record["events"])
    )


def test_a_machines_single_events_become_one_record(run):
    [(row, record)] = run(
        scrape(point("load", 1), offset=3),
        scrape(point("cpu", 2, unit="1", attributes={"cpu": "0"}), offset=5, after=1),
        scrape(point("load", 3, NOW + NANO), offset=9, after=2),
    )
    assert record["id"] == "telemetry.lines-0-3-0"
    assert record["source"] == {
        "topic": TOPIC,
        "partition": 0,
        "offset": 3,
        "last_offset": 9,
        "timestamp_unix_milli": NOW // 1_000_000,
    }
    assert {h.key: bytes(h.value) for h in row.headers}["kappa.source"] == b"telemetry.lines/0/3-9"
    # The record has the time of its first source, as latency is counted from there; event time moves with the newest.
    assert (row.timestamp_ms, row.source_oldest_ms) == (NOW // 1_000_000, NOW // 1_000_000)
    assert row.source_newest_ms == NOW // 1_000_000 + 2_000
    assert row.source_delay_ms == 1_000  # of the second and of the third scrape, whose event is a second later
    assert record["events"] == {
        "time_unix_nano": [NOW, NOW, NOW + NANO],
        "value": [1, 2, 3],
        "labels": [1, 0, 1],
        "series": ["cpu", "load"],
        "name": ["cpu", "load"],
        "unit": ["1", None],
        "type": ["gauge", "gauge"],
        "attributes": [{"cpu": "0"}, None],
    }


def test_scrapes_with_the_same_labels_have_them_once_byte_for_byte(run):
    rows = [scrape(point("b", 1.5, NOW + n), point("a", -2e-7, NOW + n), offset=n, batch=4) for n in range(3)]
    [(row, record)] = run(*rows)
    [(alone, _)] = run(rows[0], coalesce=apart)
    end = ',"series":'
    assert row.value.partition(end)[2] == alone.value.partition(end)[2]
    assert record["id"] == "telemetry.lines-0-0-4"
    assert record["events"]["labels"] == [0, 1] * 3
    assert record["events"]["value"] == [1.5, -2e-7] * 3
    assert run(rows[0]) == [(alone, orjson.loads(alone.value))]


def test_the_same_series_end_in_the_same_bytes_in_whichever_order_they_came(run):
    orders = {"vm-1": "cab", "vm-2": "bca"}
    found = run(*(scrape(point(n, attributes={"n": n}), machine=vm) for vm, order in orders.items() for n in order))
    ends = [row.value.partition(',"series":')[2] for row, _ in found]
    assert len(ends) == 2
    assert ends[0] == ends[1]
    assert [record["events"]["labels"] for _, record in found] == [[2, 0, 1], [1, 2, 0]]


def test_what_differs_in_more_than_its_events_stays_apart(run):
    others = [
        {"machine": "vm-2"},
        {"partition": 1},
        {"topic": "telemetry.otlp.metrics"},
        {"resource": {"host.name": "vm-1", "service.name": "nginx"}},
        {"retried": True},
    ]
    rows = [scrape(point(), offset=n, **other) for n, other in enumerate([{}, *others, {}])]
    found = run(*rows)
    offsets = sorted((record["source"]["offset"], record["source"].get("last_offset")) for _, record in found)
    assert offsets == [(0, 6), *((n, None) for n in range(1, 6))]
    assert events_of(found) == events_of(run(*rows, coalesce=apart))


def test_events_to_which_other_facts_apply_stay_apart(run):
    facts = [fact(site="a", known=NOW + NANO // 2)]
    rows = [scrape(point(value=n), offset=n, after=n / 4) for n in range(4)]
    found = {
        record["inventory"].get("site"): record["events"]["value"] for _, record in run(*rows, facts={"vm-1": facts})
    }
    assert found == {None: [0, 1], "a": [2, 3]}


def test_what_is_late_partly_late_or_no_plain_number_stays_apart(run):
    histogram = {"count": 2, "sum": 3.0}
    rows = [
        scrape(point(value=1), offset=1),
        scrape(point(value=2, time=NOW - 60 * NANO), offset=2),
        scrape(point(value=3, time=NOW - 60 * NANO), point(value=4), offset=3),
        scrape(point(value=5, type="histogram", histogram=histogram), offset=4),
        scrape(point(value=6), offset=5),
    ]
    values = sorted((row.topic, record["events"]["value"]) for row, record in run(*rows))
    assert values == [("events", [1, 6]), ("events", [4]), ("events", [5]), ("events.late", [2]), ("events.late", [3])]


def test_gathered_events_are_those_that_came_whatever_their_labels(run):
    random = Random(11)

    def any_point():
        attributes = random.choice([None, {random.choice(TEXTS): random.choice(TEXTS) for _ in range(2)}])
        fields = {"unit": random.choice([None, *TEXTS]), "attributes": attributes}
        kind = random.choice([{}, {"type": "sum", "monotonic": True, "temporality": "delta"}])
        value = random.choice([0, -1, 1.5, 1e-300])
        return point(random.choice(TEXTS), value, NOW + random.randrange(1000), **fields, **kind)

    rows = [
        scrape(*(any_point() for _ in range(random.choice([1, 1, 2, 5]))), offset=n, machine=f"vm-{n % 7}")
        for n in range(400)
    ]
    found, expected = run(*rows), run(*rows, coalesce=apart)
    assert events_of(found) == events_of(expected)
    assert (len(found), len(expected)) == (7, 400)


def test_log_lines_of_a_service_become_one_record(run):
    random = Random(12)
    sequences = {}

    def lines(number):
        machine = f"vm-{number % 5}"
        found = []
        for _ in range(random.choice([1, 1, 2, 5])):
            position = sequences[machine] = sequences.get(machine, 0) + 1
            attributes = random.choice([None, {random.choice(TEXTS): random.choice([*TEXTS, None])}])
            fields = {"severity_text": random.choice([None, *TEXTS]), "attributes": attributes}
            found.append(line(random.choice([None, *TEXTS]), NOW + position) | fields)
        return batch(*found, machine=machine, kind="log", offset=number) | {"topic": TOPIC, "partition": 0}

    rows = [lines(number) for number in range(200)]
    late = batch(line("x", NOW - 3_600 * NANO), kind="log", machine="vm-0", offset=200) | {"topic": TOPIC}
    found, expected = run(*rows, late), run(*rows, late, coalesce=apart)
    assert events_of(found) == events_of(expected)
    assert (len(found), len(expected)) == (6, 201)
    for row, record in found:
        if row.topic == "events":
            times = record["events"]["time_unix_nano"]
            assert times == sorted(times), "in the order in which they came"


def test_a_record_is_complete_before_it_is_too_large(run):
    rows = [scrape(*(point(f"s{n}", n / 7, NOW + n) for n in range(2_000)), offset=k) for k in range(40)]
    long_names = [scrape(point(f"{n}" * 600_000), offset=n, machine="vm-2") for n in range(3)]
    found = run(*rows, *long_names)
    parts = [record for row, record in found if row.key == "vm-1" and len(row.value) < 1_500_000]
    assert 2 < len(parts) < 10
    assert len(found) == len(parts) + 3
    # Each scrape as often as it came, and whole.
    times = [time - NOW for record in parts for time in record["events"]["time_unix_nano"]]
    assert Counter(times) == Counter(dict.fromkeys(range(2000), 40))
    assert parts[0]["source"]["last_offset"] + 1 == parts[1]["source"]["offset"]
