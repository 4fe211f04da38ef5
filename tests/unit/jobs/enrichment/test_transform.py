import base64
import json
from datetime import UTC, datetime, timedelta

import orjson
import pyarrow as pa
import pytest
from pyspark.sql import types as T

from infra.contract.columnar import event_columns, to_rows
from infra.contract.dead_letters import REJECTED_BYTES, REJECTED_NAME
from infra.contract.lateness import AllowedLateness, Decision
from infra.contract.schemas import DECODED, EVENT
from infra.contract.topics import load_topics
from jobs.enrichment.inventory import SCHEMA, parse_fact
from jobs.enrichment.inventory import rows as inventory_rows
from jobs.enrichment.settings import EnrichmentSettings
from jobs.enrichment.transform import RECORD_BYTES, enrichment

NANO = 1_000_000_000
RECEIVED = datetime(2026, 1, 31, 12, 0, 0, tzinfo=UTC)
NOW = int(RECEIVED.timestamp()) * NANO
TOPIC = "telemetry.otlp.metrics"  # lateness 20 s, future 10 s

KAFKA = [
    T.StructField("key", T.BinaryType()),
    T.StructField("value", T.BinaryType()),
    T.StructField("topic", T.StringType()),
    T.StructField("partition", T.IntegerType()),
    T.StructField("offset", T.LongType()),
    T.StructField("timestamp", T.TimestampType()),
]
FRAME = T.StructType([*KAFKA, *DECODED.fields])


def point(time=NOW, value=1.5, **fields):
    event = {"time_unix_nano": time, "series": "cpu", "name": "cpu", "value": value, "type": "gauge", **fields}
    return {field: event.get(field) for field in DECODED["events"].dataType.elementType.names}


def line(body, time=NOW):
    return point(time, None, series=None, name=None, type="log", body=body)


def batch(*events, offset=7, machine="vm-1", kind="metric", error=None, value=b"raw"):
    return {
        **dict.fromkeys(DECODED.names),
        "key": b"k",
        "value": value,
        "topic": TOPIC,
        "partition": 2,
        "offset": offset,
        "timestamp": RECEIVED,
        "batch": 0,
        "machine": machine,
        "kind": None if error else kind,
        "resource": {"host.name": machine} if machine else None,
        "events": None if error else list(events),
        "error": error,
    }


def rendered(*events, sound=True, **fields):
    """A batch as Python decoders give it: its events as JSON, and the range of their times."""
    times = [event["time_unix_nano"] for event in events] if sound else [None]
    json_ = orjson.dumps(event_columns(events)).decode()
    whole = {"events": None, "json": json_, "first_unix_nano": min(times), "last_unix_nano": max(times)}
    lengths = {
        f"{name}_bytes": max(len((event.get(name) or "").encode()) for event in events) for name in ("series", "unit")
    }
    return batch(**fields) | whole | lengths


def frames(spark, batches, facts=()):
    """Decoded batches and inventory facts, as enrichment takes them."""
    inventory = spark.createDataFrame(pa.Table.from_pylist(inventory_rows(dict(facts)), schema=SCHEMA))
    return spark.createDataFrame([tuple(b[name] for name in FRAME.names) for b in batches], FRAME), inventory


@pytest.fixture
def run(spark):
    """Enrich decoded batches; the records by topic, as parsed JSON, with what Kafka would carry beside it."""

    def enriched(*batches, facts=(), decisions=(), **limits):
        found: dict[str, list] = {}
        enrich = enrichment(load_topics(), settings=EnrichmentSettings(**limits))
        for row in enrich(*frames(spark, batches, facts), decisions).collect():
            found.setdefault(row.topic, []).append((row, json.loads(row.value)))
        return found

    return enriched


def fact(machine="vm-1", known=NOW - NANO, **record):
    return parse_fact(json.dumps({"machine": machine, **record}).encode(), known // 1_000_000)[1]


def test_a_good_batch_becomes_one_record_of_its_machine(run):
    found = run(batch(point(value=0.25, unit="1", attributes={"cpu": "0"}), point(NOW - NANO)))
    [(row, record)] = found.pop("events")
    assert not found
    assert row.key == "vm-1"
    assert row.timestamp_ms == NOW // 1_000_000
    assert {h.key: bytes(h.value) for h in row.headers} == {
        "kappa.source": b"telemetry.otlp.metrics/2/7",
        "kappa.schema": b"events/3",
    }
    assert (row.source_topic, row.source_partition, row.source_newest_ms) == (TOPIC, 2, NOW // 1_000_000)
    assert record == {
        "id": "telemetry.otlp.metrics-2-7-0",
        "machine": "vm-1",
        "kind": "metric",
        "resource": {"host.name": "vm-1"},
        "inventory": {"known": False},
        "source": {"topic": TOPIC, "partition": 2, "offset": 7, "timestamp_unix_milli": NOW // 1_000_000},
        "events": {
            "time_unix_nano": [NOW, NOW - NANO],
            "value": [0.25, 1.5],
            "series": ["cpu", "cpu"],
            "name": ["cpu", "cpu"],
            "unit": ["1", None],
            "type": ["gauge", "gauge"],
            "attributes": [{"cpu": "0"}, None],
        },
    }
    assert list(record)[-1] == "events"
    assert list(record["events"]) == [name for name in EVENT.names if name in record["events"]]


def test_how_late_an_event_may_be_is_what_was_decided_for_its_records_kafka_timestamp(run):
    """To the millisecond, as AllowedLateness.at says it, too."""
    decisions = (Decision(NOW // 1_000_000 - 1, 9_000), Decision(NOW // 1_000_000, 2_000))
    ages, before = (2.0, 2.001, 8.0), {"timestamp": RECEIVED - timedelta(milliseconds=1)}
    batches = [batch(point(NOW - round(age * NANO))) for age in ages]
    found = run(*batches, *(one | before for one in batches), decisions=decisions)
    allowed = AllowedLateness.of(load_topics(), decisions)
    assert [allowed.at(TOPIC, NOW // 1_000_000 - back) for back in (0, 1, 2)] == [2_000, 9_000, 20_000]
    delays = {topic: sorted(row.source_delay_ms for row, _ in rows) for topic, rows in found.items()}
    assert delays == {"events": [1_999, 2_000, 2_000, 7_999], "events.late": [2_001, 8_000]}


def test_the_delay_of_a_record_is_that_of_its_oldest_event_and_of_none_that_is_rejected_or_sent_again(run):
    late, old = point(NOW - 60 * NANO), point(NOW - 3 * NANO)
    found = run(
        batch(point(), old), batch(late), rendered(point(), old), batch(old) | {"retried": True}, batch(point(0))
    )
    delays = {topic: [row.source_delay_ms for row, _ in rows] for topic, rows in found.items()}
    assert delays == {"events": [3_000, 3_000, None], "events.late": [60_000], "events.rejected": [None]}


@pytest.mark.parametrize(
    ("age", "topic"),
    [(20.0, "events"), (20.001, "events.late"), (-10.0, "events"), (-10.001, "events.rejected")],
)
def test_time_is_judged_by_the_brokers_clock_to_the_limit(run, age, topic):
    found = run(batch(point(NOW - round(age * NANO))))
    assert list(found) == [topic]


def test_a_mixed_batch_is_split_and_each_event_is_in_one_place(run):
    events = [
        point(value=1.0),
        point(NOW - 60 * NANO, 2.0),
        point(NOW + 60 * NANO, 3.0),
        point(value=None),
        point(value=float("nan")),
        point(None, 4.0),
    ]
    found = run(batch(*events))
    assert found["events"][0][1]["events"]["value"] == [1]
    assert found["events.late"][0][1]["events"]["value"] == [2]
    rejected = {record["code"]: record for _, record in found["events.rejected"]}
    assert {code: record["events"] for code, record in rejected.items()} == {
        "future": 1,
        "no_value": 1,
        "not_finite": 1,
        "no_time": 1,
    }
    assert json.loads(rejected["future"]["batch"])["events"]["value"] == [3]
    assert len({record["id"] for record in rejected.values()}) == 4
    assert "value" not in rejected["future"]


def test_a_rendered_batch_of_one_verdict_passes_as_it_is(run):
    found = run(
        rendered(point(value=1.0), point(NOW - NANO, 2.0), offset=1),
        rendered(point(NOW - 60 * NANO, 3.0), point(NOW - 30 * NANO, 4.0), offset=2),
        facts={"vm-1": [fact(site="a")]},
    )
    [(_, accepted)], [(_, late)] = found.pop("events"), found.pop("events.late")
    assert not found
    assert accepted["events"]["value"] == [1.0, 2.0]
    assert (accepted["id"], accepted["inventory"]["site"]) == ("telemetry.otlp.metrics-2-1-0", "a")
    assert late["events"]["value"] == [3.0, 4.0]


def test_both_forms_of_a_batch_give_the_same_bytes(run):
    """As rows, as text, and as text that had to be parsed, with an event in it that goes elsewhere."""
    histogram = {"count": 2, "sum": 3.0, "bounds": [1.0], "counts": [1, 1], "quantiles": {"0.5": "1"}}
    events = [point(value=0.25, attributes={"a": 'b",'}), point(name=None, type="histogram", histogram=histogram)]
    late = point(NOW - 60 * NANO)
    found = run(
        batch(*events, offset=1), rendered(*events, offset=2), rendered(*events, late, offset=3), batch(late, offset=4)
    )
    texts = {row.value.partition('"events":')[2] for row, _ in found["events"]}
    assert (len(found["events"]), texts) == (3, {orjson.dumps(event_columns(events)).decode() + "}"})
    assert len({row.value.partition('"events":')[2] for row, _ in found["events.late"]}) == 1


def test_a_rendered_batch_of_several_verdicts_is_split(run):
    limits = [point(NOW - 20 * NANO - 1, 1.0), point(NOW - 20 * NANO, 2.0), point(NOW + 10 * NANO + 1, 3.0)]
    unsound = [point(value=4.0), point(value="NaN"), point(value=None), point(None, 5.0)]
    found = run(rendered(*limits, offset=1), rendered(*unsound, sound=False, offset=2))
    rejected = found.pop("events.rejected")
    values = {topic: sorted(value for _, r in rows for value in r["events"]["value"]) for topic, rows in found.items()}
    assert values == {"events": [2.0, 4.0], "events.late": [1.0]}
    codes = {record["code"]: record["events"] for _, record in rejected}
    assert codes == {"future": 1, "not_finite": 1, "no_value": 1, "no_time": 1}


@pytest.mark.parametrize("time", [0, -1, -(2**63), 2**63 - 1])
def test_absurd_times_are_rejected(run, time):
    found = run(batch(point(time)))
    assert list(found) == ["events.rejected"]


def test_what_could_not_be_decoded_keeps_its_bytes(run):
    raw = b"\xff\x00 not json"
    [(row, record)] = run(batch(error="not_json", machine=None, value=raw))["events.rejected"]
    assert row.key == "telemetry.otlp.metrics/2/7"
    assert base64.b64decode(record["value"]) == raw
    assert base64.b64decode(record["key"]) == b"k"
    assert (record["code"], record["events"]) == ("not_json", 1)
    assert record["source"]["offset"] == 7


def test_a_huge_undecodable_record_is_kept_in_part(run):
    raw = b"x" * (REJECTED_BYTES + 5)
    [(_, record)] = run(batch(error="not_json", value=raw))["events.rejected"]
    assert base64.b64decode(record["value"]) == raw[:REJECTED_BYTES]


def test_what_no_broker_would_take_is_rejected_without_its_content(run):
    escaped = [line("\x01" * 60_000)] * (RECORD_BYTES // 360_000)  # six bytes each in JSON
    found = run(batch(*escaped, line("short"), kind="log", offset=1), batch(line("short"), kind="log", offset=2))
    [(row, record)] = found["events.rejected"]
    assert len(row.value) < 1_000
    assert (record["code"], record["part"], record["events"]) == ("too_large", 0, 26)
    assert "value" not in record and "batch" not in record
    assert row.key == "telemetry.otlp.metrics/2/1"
    assert [record["source"]["offset"] for _, record in found["events"]] == [2]


def test_the_events_of_a_rendered_batch_that_is_too_large_are_counted(run):
    huge = {"a": "x" * RECORD_BYTES}  # no decoder makes such ones: all attributes are part of the series
    found = run(rendered(point(attributes=huge), point(), point(NOW - NANO)))
    [(_, record)] = found["events.rejected"]
    assert (record["code"], record["events"]) == ("too_large", 3)


def test_a_rejections_key_and_machine_are_kept_in_part(run):
    [(row, record)] = run({**batch(machine="m" * 5_000, error="no_events"), "key": b"k" * 5_000})["events.rejected"]
    assert record["machine"] == "m" * REJECTED_NAME
    assert base64.b64decode(record["key"]) == b"k" * REJECTED_NAME
    assert row.key == "telemetry.otlp.metrics/2/7"


def test_log_lines_get_their_template_as_series(run):
    [(_, record)] = run(batch(line("Connection 17 closed"), line("Connection 4242 closed"), kind="log"))["events"]
    first, second = to_rows(record["events"])
    assert first["template"] == second["template"] == first["series"]
    assert "17" not in first["template"]
    assert (first["body"], second["body"]) == ("Connection 17 closed", "Connection 4242 closed")


def test_a_machine_gets_the_facts_of_its_own_time(run):
    early, late = NOW - 5 * NANO, NOW - 1 * NANO
    known = [fact(site="old"), fact(site="new", valid_from_unix_nano=NOW - 3 * NANO)]
    found = run(batch(point(early), offset=1), batch(point(late), offset=2), facts={"vm-1": known})
    sites = {record["source"]["offset"]: record["inventory"] for _, record in found["events"]}
    assert sites == {1: {"known": True, "site": "old"}, 2: {"known": True, "site": "new"}}


def test_unknown_machines_and_reasons_are_noted_for_the_count(run):
    found = run(
        batch(point(), offset=1),
        batch(point(), offset=2, machine="vm-9"),
        batch(offset=3, machine=None, error="not_json", value=b"{"),
        facts={"vm-1": [fact()]},
    )
    notes = {record["source"]["offset"]: row.note for rows in found.values() for row, record in rows}
    assert notes == {1: None, 2: "unknown_machine", 3: "not_json"}


def test_a_fact_that_came_after_the_record_does_not_apply(run):
    [(_, record)] = run(batch(point()), facts={"vm-1": [fact(site="a", known=NOW + NANO)]})["events"]
    assert record["inventory"] == {"known": False}


def test_a_fact_ends_where_it_says(run):
    ended = fact(site="a", valid_to_unix_nano=NOW - NANO)
    [(_, record)] = run(batch(point()), facts={"vm-1": [ended]})["events"]
    assert record["inventory"] == {"known": False}


def test_facts_say_until_when_their_machine_is_there(run):
    ends = fact(site="a", valid_to_unix_nano=NOW + NANO)
    [(_, record)] = run(batch(point()), facts={"vm-1": [ends, fact(site="b", valid_from_unix_nano=NOW + NANO)]})[
        "events"
    ]
    assert record["inventory"] == {"known": True, "site": "a", "valid_to_unix_nano": NOW + NANO}


def test_what_retires_a_machine_leaves_its_facts_for_the_time_before(run):
    end = fact(valid_from_unix_nano=NOW, valid_to_unix_nano=NOW, known=NOW - 2 * NANO)
    found = run(batch(point(NOW - NANO), offset=1), batch(point(), offset=2), facts={"vm-1": [fact(site="a"), end]})
    facts = {record["source"]["offset"]: record["inventory"] for _, record in found["events"]}
    assert facts == {1: {"known": True, "site": "a"}, 2: {"known": False}}


def test_a_fact_goes_on_for_what_came_before_the_next_one_was_known(run):
    """That begins earlier than it is known; a replay, which knows it from the beginning, must give the same answer."""
    facts = [fact(site="a", known=NOW - 2 * NANO), fact(site="b", valid_from_unix_nano=NOW - NANO, known=NOW + NANO)]
    found = run(
        batch(point(), offset=1),
        batch(point(), offset=2) | {"timestamp": RECEIVED + timedelta(seconds=1)},
        facts={"vm-1": facts},
    )
    sites = {record["source"]["offset"]: record["inventory"]["site"] for _, record in found["events"]}
    assert sites == {1: "a", 2: "b"}


def test_a_correction_holds_from_when_it_is_known(run):
    facts = [fact(site="wrong", known=NOW - 2 * NANO), fact(site="right", known=NOW + NANO)]
    found = run(
        batch(point(), offset=1),
        batch(point(), offset=2) | {"timestamp": RECEIVED + timedelta(seconds=1)},
        facts={"vm-1": facts},
    )
    sites = {record["source"]["offset"]: record["inventory"]["site"] for _, record in found["events"]}
    assert sites == {1: "wrong", 2: "right"}


def test_an_older_fact_does_not_return_when_the_next_one_has_ended(run):
    ended = fact(site="b", valid_from_unix_nano=NOW - 3 * NANO, valid_to_unix_nano=NOW - NANO)
    [(_, record)] = run(batch(point()), facts={"vm-1": [fact(site="a"), ended]})["events"]
    assert record["inventory"] == {"known": False}


POD = {"k8s.pod.name": "cart-1", "k8s.deployment.name": "cart", "cloud.region": "eu-1", "k8s.node.name": "node-3"}


def pod(**fields):
    return batch(point(), machine="cart-1", **fields) | {"resource": POD}


def test_a_resource_tells_what_the_inventory_does_not(run):
    """`known` stays the inventory's; a member of a workload is no unknown machine."""
    ((row, record),) = run(pod())["events"]
    assert record["inventory"] == {
        "known": False,
        "type": "virtual",
        "site": "eu-1",
        "hypervisor": "node-3",
        "workload": "deployment/cart",
    }
    assert (row.key, row.note) == ("deployment/cart", None)  # its members are in one partition


def test_the_inventory_has_the_first_word(run):
    ((_, record),) = run(pod(), facts={"cart-1": [fact("cart-1", site="dc1", workload="carts")]})["events"]
    assert record["inventory"] == {
        "known": True,
        "type": "virtual",
        "site": "dc1",
        "hypervisor": "node-3",
        "workload": "carts",
    }


def test_what_a_machine_depends_on_comes_from_the_inventory_alone(run):
    facts = {"vm-1": [fact(depends_on=["udm-1", "DNS"])], "vm-2": [fact("vm-2", depends_on=[])]}
    found = run(batch(point(), offset=1), batch(point(), offset=2, machine="vm-2"), facts=facts)["events"]
    inventories = {record["source"]["offset"]: record["inventory"] for _, record in found}
    assert inventories == {1: {"known": True, "depends_on": ["udm-1", "DNS"]}, 2: {"known": True}}


def test_a_place_alone_leaves_a_machine_unknown(run):
    ((row, record),) = run(batch(point()) | {"resource": {"host.name": "vm-1", "cloud.region": "eu-1"}})["events"]
    assert (record["inventory"], row.note) == ({"known": False, "site": "eu-1"}, "unknown_machine")


def test_a_control_event_stays_in_its_partition_and_is_no_unknown_machine(run):
    [(row, record)] = run(batch(point(value=None, type="control", body="{}"), machine="upf-*", kind="control"))[
        "events"
    ]
    assert (row.partition, row.key, row.note) == (2, "upf-*", None)
    assert (record["kind"], record["events"]["body"]) == ("control", ["{}"])


def test_a_control_event_goes_to_each_part_of_its_partition_in_a_rescaled_generation(spark):
    live = load_topics()
    wide = live.in_generation("wide", {key for key, topic in live.topics.items() if topic.is_derived}, live)
    control = batch(point(value=None, type="control", body="{}"), machine="upf-*", kind="control")
    enrich = enrichment(wide.rescaled(12), settings=EnrichmentSettings())
    rows = enrich(*frames(spark, [control, batch(point())])).collect()
    assert sorted((row.key, row.partition) for row in rows if row.partition is not None) == [
        ("upf-*", 2),
        ("upf-*", 6),
        ("upf-*", 10),
    ]
    assert [row.key for row in rows if row.partition is None] == ["vm-1"]
    assert {row.topic for row in rows} == {"events.wide"}


def test_a_log_line_without_a_body_has_a_series_too(run):
    [(_, record)] = run(batch(line(None), line("Connection 17 closed"), kind="log"))["events"]
    assert [event["series"] for event in to_rows(record["events"])] == ["", "Connection <*> closed"]


def outcomes(found):
    """Where the rows went, by source offset: the topic, or the code of the dead letter, and the number of events."""
    return {
        (record["source"]["offset"], record.get("code", topic)): record["events"]
        if "code" in record
        else len(record["events"]["time_unix_nano"])
        for topic, rows in found.items()
        for _, record in rows
    }


def test_a_machine_with_too_long_a_name_is_rejected_by_its_bytes(run):
    names = ["m" * 255, "m" * 256, "\u00e9" * 128]
    found = run(
        *(rendered(point(), offset=n, machine=name) for n, name in enumerate(names)),
        batch(line("up"), line("up"), offset=3, machine=names[1], kind="log"),
    )
    assert outcomes(found) == {
        (0, "events"): 1,
        (1, "machine_too_long"): 1,
        (2, "machine_too_long"): 1,
        (3, "machine_too_long"): 2,
    }
    [letter] = [record for _, record in found["events.rejected"] if record["source"]["offset"] == 1]
    assert json.loads(letter["batch"])["machine"] == names[1]
    assert "KAPPA_ENRICHMENT_MACHINE_BYTES" in letter["reason"]


@pytest.mark.parametrize("form", [batch, rendered])
def test_series_and_units_that_are_too_long_are_rejected_and_their_neighbours_are_not(run, form):
    long_series, long_unit = point(series="s" * 2_049), point(unit="u" * 64)
    found = run(
        form(point(series="s" * 2_048), point(unit="u" * 63), offset=1),
        form(point(), long_series, long_unit, long_unit, offset=2),
        form(long_series | {"time_unix_nano": NOW - 60 * NANO}, offset=3),
    )
    assert outcomes(found) == {
        (1, "events"): 2,
        (2, "events"): 1,
        (2, "series_too_long"): 1,
        (2, "unit_too_long"): 2,
        (3, "series_too_long"): 1,
    }


def test_rendered_points_whose_lengths_nobody_has_told_are_looked_at(run):
    unknown = {"series_bytes": None, "unit_bytes": None}
    found = run(rendered(point(), offset=1) | unknown, rendered(point(series="s" * 3_000), offset=2) | unknown)
    assert outcomes(found) == {(1, "events"): 1, (2, "series_too_long"): 1}


def test_attributes_of_lines_and_resources_are_bounded(run):
    def with_attributes(attributes, offset):
        return batch(line("up") | {"attributes": attributes}, line("down"), offset=offset, kind="log")

    many, long_key = {f"a{n}": "x" for n in range(129)}, {"k" * 256: "x"}
    found = run(
        with_attributes(many, 1),
        with_attributes(long_key, 2),
        rendered(point(), point(), offset=3) | {"resource": many},
        rendered(point(), offset=4) | {"resource": long_key},
        with_attributes(dict(list(many.items())[:128]), 5),
    )
    assert outcomes(found) == {
        (1, "events"): 1,
        (1, "too_many_attributes"): 1,
        (2, "events"): 1,
        (2, "attribute_too_long"): 1,
        (3, "too_many_attributes"): 2,
        (4, "attribute_too_long"): 1,
        (5, "events"): 2,
    }


def test_long_lines_and_values_are_cut_and_counted(run):
    long_line = line("Connection 17 closed " + "x" * 100) | {"attributes": {"a": "v" * 30, "b": None, "c": "short"}}
    found = run(
        batch(long_line, line("short"), offset=1, kind="log"),
        rendered(point(), offset=2) | {"resource": {"host.name": "vm-1", "note": "n" * 30}},
        batch(line("short"), offset=3, kind="log"),
        body_characters=40,
        attribute_characters=10,
        facts={"vm-1": [fact()]},
    )
    records = {record["source"]["offset"]: (row.note, record) for row, record in found["events"]}
    first, second = to_rows(records[1][1]["events"])
    assert (first["body"], second["body"]) == ("Connection 17 closed " + "x" * 19, "short")
    assert first["attributes"] == {"a": "v" * 10, "b": None, "c": "short"}
    assert first["template"].startswith("Connection <*> closed")
    assert records[2][1]["resource"] == {"host.name": "vm-1", "note": "n" * 10}
    assert {offset: note for offset, (note, _) in records.items()} == {1: "cut", 2: "cut", 3: None}


def test_the_body_of_a_control_event_is_never_cut(run):
    body = json.dumps({"action": "reset", "machine": "m" * 100})
    control = batch(point(value=None, type="control", body=body), machine="upf-*", kind="control")
    [(_, record)] = run(control, body_characters=10)["events"]
    assert record["events"]["body"] == [body]


@pytest.mark.parametrize(
    "record",
    [
        [],
        "vm-1",
        None,
        {"site": "a"},
        {"machine": "vm-1", "site": 5},
        {"machine": "vm-1", "site": "s" * 1_001},
        {"machine": "vm-1", "valid_from_unix_nano": 2**64 - 1},
        {"machine": "vm-1", "valid_to_unix_nano": "never"},
        {"machine": "vm-1", "valid_to_unix_nano": []},
        {"machine": "vm-1", "depends_on": "udm-1"},
        {"machine": "vm-1", "depends_on": ["udm-1", 2]},
        {"machine": "vm-1", "depends_on": [""]},
        {"machine": "vm-1", "depends_on": ["u"] * 101},
        {"machine": "vm-1", "depends_on": ["u" * 4_001]},
    ],
)
def test_an_inventory_record_that_makes_no_sense_is_refused_as_a_whole(record):
    with pytest.raises((ValueError, KeyError, TypeError)):
        parse_fact(json.dumps(record).encode(), 0)
