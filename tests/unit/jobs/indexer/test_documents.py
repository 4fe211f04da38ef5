import base64
from functools import reduce
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.contract import schemas
from infra.contract.columnar import to_columns
from jobs.indexer.documents import (
    PHASES,
    TEXT_BYTES,
    incidents,
    merge,
    novelties,
    rejected,
    statistics,
    upgrade,
    version,
)
from jobs.indexer.indices import template_of

MILLI = 1_000_000

ROWS = [
    {
        "series": "cpu{core=0,state=user}",
        "name": "cpu",
        "kind": "metric",
        "unit": "1",
        "attributes": {"state": "user", "core": "0"},
        "count": 4,
        "sum": 2.0,
        "mean": 0.5,
        "variance": 0.1,
        "min": 0.1,
        "max": 0.9,
        "first": 0.4,
        "last": 0.6,
        "rate": False,
        "observations": 4,
        "p50": 0.4,
        "p95": 0.9,
        "p99": 0.9,
        "missing": 0.0,
    },
    {
        "series": "link <*> down",
        "name": "log",
        "kind": "log",
        "count": 3,
        "severity_number": 17,
        "example": "link 4 down",
    },
]

STATISTICS = {
    "id": "vm-1/7",
    "machine": "vm-1",
    "inventory": {
        "known": True,
        "type": "virtual",
        "site": "north",
        "hypervisor": "hv-1",
        "tenant": "core",
        "role": "amf",
        "workload": "deployment/core/amf",
    },
    "window": {
        "kind": "tumbling",
        "size_seconds": 10.0,
        "start_unix_nano": 20_000 * MILLI,
        "end_unix_nano": 30_000 * MILLI + 999,
    },
    "provisional": False,
    "until_unix_nano": 30_000 * MILLI,
    "statistics": to_columns(ROWS),
}

NOVELTY = {
    "id": "n1",
    "phase": "start",
    "verdict": "anomaly",
    "machine": "vm-1",
    "inventory": STATISTICS["inventory"],
    "peers": {"machines": 20, "hypervisor": 4, "site": 20, "tenant": 10, "role": 5},
    "depends_on": ["db-1"],
    "seen_before": True,
    "series": "cpu",
    "name": "cpu",
    "kind": "metric",
    "time_unix_nano": 30_000 * MILLI,
    "since_unix_nano": 20_000 * MILLI,
    "score": 14.5,
    "probability": 5e-7,
    "observed": 0.9,
    "expected": 0.5,
    "expected_low": 0.4,
    "expected_high": 0.6,
    "unit": "1",
    "statistic": "level",
    "window_seconds": 10.0,
    "contributing": 1,
    "contributors": [
        {
            "series": "cpu",
            "unit": "1",
            "score": 14.5,
            "share": 1.0,
            "observed": 0.9,
            "expected": 0.5,
            "expected_low": 0.4,
            "expected_high": 0.6,
        }
    ],
    "example": "a line",
    "text": "cpu on vm-1 is 0.9",
}

INCIDENT = {
    "id": "i1",
    "phase": "start",
    "time_unix_nano": 30_000 * MILLI,
    "since_unix_nano": 20_000 * MILLI,
    "machines": 1,
    "novelties": 1,
    "verdicts": ["anomaly"],
    "score": 14.5,
    "causes": [
        {
            "kind": "machine",
            "name": "vm-1",
            "likelihood": 2.0,
            "affected": 1,
            "machines": 1,
            "because": [{"evidence": "deviation", "weight": 2.0, "text": "cpu is 0.9, expected 0.5"}],
        }
    ],
    "members": [
        {
            "novelty": "n1",
            "machine": "vm-1",
            "verdict": "anomaly",
            "series": "cpu",
            "since_unix_nano": 20_000 * MILLI,
            "score": 14.5,
        }
    ],
    "merged_into": "i0",
    "text": "cpu on vm-1 is 0.9",
}

INCIDENT_FIELDS = ("phase", "machines", "novelties", "verdicts", "score", "causes", "merged_into", "text")

REJECTED = {
    "id": "telemetry.lines-0-7",
    "stage": "enrichment",
    "code": "malformed",
    "reason": "could not be decoded",
    "source": {"topic": "telemetry.lines", "partition": 0, "offset": 7, "timestamp_unix_milli": 40_000},
    "key": base64.b64encode(b"vm-1").decode(),
    "value": base64.b64encode(b'{"caf\xc3\xa9": \xff').decode(),
    "machine": "vm-1",
    "events": 1,
}

SHARED = {
    "@timestamp": 30_000,
    "machine": "vm-1",
    **STATISTICS["inventory"],
    "window": {"kind": "tumbling", "size_seconds": 10.0, "start": 20_000, "end": 30_000},
}


def test_statistics_become_one_document_a_series():
    cpu, log = statistics(STATISTICS).values()
    plain = {name: value for name, value in ROWS[0].items() if name != "attributes"}
    assert cpu == {**SHARED, **plain, "attributes": ["core=0", "state=user"]}
    assert log == {**SHARED, **{name: value for name, value in ROWS[1].items() if name != "example"}}


def test_ids_depend_on_record_and_series_alone():
    again = {**STATISTICS, "statistics": to_columns(ROWS[::-1])}
    assert set(statistics(again)) == set(statistics(STATISTICS))
    assert set(statistics({**STATISTICS, "id": "vm-1/8"})).isdisjoint(statistics(STATISTICS))


def test_an_id_of_a_long_series_fits():
    record = {**STATISTICS, "statistics": {"series": ["x" * 5000], "count": [1]}}
    (identity,) = statistics(record)
    assert len(identity) == 32


def test_an_id_has_the_same_length_whatever_the_record_is_called():
    record = {**STATISTICS, "id": "h" * 600 + "/7", "machine": "h" * 600}
    found = statistics(record)
    assert {len(identity) for identity in found} == {32}
    assert {document["machine"] for document in found.values()} == {"h" * 600}
    ((identity, _),) = rejected({**REJECTED, "id": "t" * 5_000}).items()
    assert len(identity) == 32


@pytest.mark.parametrize("identity", ["", "n" * 129, "\u20ac" * 43])
@pytest.mark.parametrize(("convert", "record"), [(novelties, "NOVELTY"), (incidents, "INCIDENT")])
def test_an_id_that_the_index_would_not_take_is_an_error(convert, record, identity):
    with pytest.raises(ValueError, match="id"):
        convert({**globals()[record], "id": identity})


def test_long_strings_are_cut_so_that_the_index_takes_them():
    record = {**STATISTICS, "machine": "\U0001f600" * 50_000, "statistics": {"series": ["\U0001f600" * 50_000]}}
    ((_, document),) = statistics(record).items()
    assert len(document["series"].encode()) <= 32_766
    assert len(document["machine"]) == 1024
    (document,) = novelties({**NOVELTY, "text": "x" * 100_000, "contributors": [{"series": "y" * 100_000}]}).values()
    assert len(document["text"]) == len(document["contributors"][0]["series"]) == 8191


def test_a_record_of_too_many_series_is_an_error():
    with pytest.raises(ValueError, match="50001 series"):
        statistics({**STATISTICS, "statistics": {"series": [str(n) for n in range(50_001)]}})


@pytest.mark.parametrize("phase", ["over", "x" * 100_000])
def test_an_unknown_phase_is_an_error(phase):
    with pytest.raises(ValueError, match="start, update, end"):
        novelties({**NOVELTY, "phase": phase})


@pytest.mark.parametrize("kind", ["statistics", "novelties", "incidents", "rejected"])
def test_no_keyword_can_be_immense_and_no_label_makes_a_field(kind):
    def fields(properties):
        for name, field in properties.items():
            yield name, field
            yield from fields(field.get("properties", {}))

    mappings = template_of(kind)["template"]["mappings"]
    assert mappings["dynamic"] == "strict"
    limits = {
        name: field.get("ignore_above")
        for name, field in fields(mappings["properties"])
        if field.get("type") == "keyword"
    }
    assert set(limits.values()) == {8191}, limits


def test_a_watermark_has_no_documents():
    assert statistics({"watermark_unix_nano": 5}) == {}


def test_a_record_without_window_is_an_error():
    with pytest.raises(KeyError, match="window"):
        statistics({"id": "x", "machine": "vm-1"})


def test_rejected_bytes_become_readable_text():
    assert list(rejected(REJECTED).values()) == [
        {
            "@timestamp": 40_000,
            "id": "telemetry.lines-0-7",
            "stage": "enrichment",
            "code": "malformed",
            "reason": "could not be decoded",
            "machine": "vm-1",
            "events": 1,
            "source": {"topic": "telemetry.lines", "partition": 0, "offset": 7},
            "key": "vm-1",
            "value": '{"café": \ufffd',
        }
    ]


def test_rejected_text_is_cut():
    (document,) = rejected({**REJECTED, "value": base64.b64encode(b"x" * 100_000).decode()}).values()
    assert document["value"] == "x" * TEXT_BYTES


def test_rejected_events_that_were_decoded_are_shown():
    record = {name: value for name, value in REJECTED.items() if name != "value"}
    (document,) = rejected({**record, "batch": '{"machine":"vm-1"}'}).values()
    assert document["value"] == '{"machine":"vm-1"}'


def test_a_control_event_is_no_document():
    assert statistics({"id": "c", "machine": "*", "control": {"action": "reset"}, "time_unix_nano": 0}) == {}


def test_an_incident_starts():
    (document,) = incidents(INCIDENT).values()
    assert document == {
        "@timestamp": 20_000,
        **{name: INCIDENT[name] for name in INCIDENT_FIELDS},
        "members": [
            {"novelty": "n1", "machine": "vm-1", "verdict": "anomaly", "series": "cpu", "since": 20_000, "score": 14.5}
        ],
        "started": 20_000,
        "alerted": 30_000,
        "updated": 30_000,
        "peaked": 30_000,
    }


def test_an_incident_is_as_its_newest_record_has_it():
    later = {**INCIDENT, "phase": "end", "time_unix_nano": 90_000 * MILLI, "machines": 3, "score": 20.0}
    (one,), (other,) = incidents(INCIDENT).values(), incidents(later).values()
    document = merge(other, one)
    assert document == merge(one, other)
    facts = {"phase": "end", "machines": 3, "score": 20.0, "alerted": 30_000, "updated": 90_000, "ended": 90_000}
    assert {name: document[name] for name in facts} == facts


def test_a_watermark_of_novelties_is_no_document():
    assert novelties({"watermark_unix_nano": 1}) == {}


def test_a_novelty_starts():
    evidence = ("score", "probability", "observed", "expected", "expected_low", "expected_high")
    story = ("verdict", "seen_before", "phase", "example", "text", "statistic", "window_seconds")
    plain = ("machine", "series", "name", "kind", "unit", *story, *evidence, "contributing", "contributors")
    assert novelties(NOVELTY) == {
        "n1": {
            "@timestamp": 20_000,
            **{name: NOVELTY[name] for name in plain},
            **STATISTICS["inventory"],
            "started": 20_000,
            "alerted": 30_000,
            "updated": 30_000,
            "peaked": 30_000,
        }
    }


def state(phase: str, seconds: int, score: float, **fields: object) -> dict:
    return novelties({**NOVELTY, "phase": phase, "time_unix_nano": seconds * 1000 * MILLI, "score": score, **fields})[
        "n1"
    ]


LIFE = [
    state("start", 30, 14.5),
    state("update", 40, 60.0, observed=3.0, verdict="state_change", text="stays"),
    state("end", 90, 1.0, observed=0.5, verdict="state_change", text="is over", feedback="not-anomalous"),
]


def test_the_life_of_a_novelty_in_one_document():
    document = reduce(merge, LIFE)
    expected = {
        "verdict": "state_change",
        "phase": "end",
        "text": "is over",
        "feedback": "not-anomalous",
        "score": 60.0,
        "observed": 3.0,
        "started": 20_000,
        "alerted": 30_000,
        "peaked": 40_000,
        "updated": 90_000,
        "ended": 90_000,
    }
    assert {name: document[name] for name in expected} == expected


def test_neither_order_nor_repetition_of_its_records_shows():
    expected = reduce(merge, LIFE)
    assert [reduce(merge, [*order, *order]) for order in permutations(LIFE)] == [expected] * 6


STATES = st.lists(
    st.builds(state, st.sampled_from(PHASES), st.integers(30, 33), st.sampled_from([1.0, 2.0])),
    min_size=3,
    max_size=3,
    unique_by=version,
)


@given(STATES)
def test_merge_is_a_join(states: list[dict]):
    one, two, three = states
    assert merge(one, one) == one
    assert merge(one, two) == merge(two, one)
    assert merge(merge(one, two), three) == merge(one, merge(two, three))


def test_a_novelty_without_a_score_has_its_life_too():
    start, end = ({name: value for name, value in one.items() if name != "score"} for one in (LIFE[0], LIFE[2]))
    assert merge(start, end)["phase"] == "end"
    assert "score" not in merge(start, end)


def test_versions_order_by_time_then_phase_and_fit_a_long():
    ordered = [state("start", 30, 1), state("update", 30, 1), state("end", 30, 1), state("start", 31, 1)]
    assert sorted(ordered, key=version) == ordered
    assert version(state("end", 4_102_444_800, 1)) < 2**63  # the year 2100


def _fields(template: dict) -> set[str]:
    return set(template["template"]["mappings"]["properties"])


@pytest.mark.parametrize(
    ("kind", "documents"),
    [
        ("statistics", [*statistics(STATISTICS).values()]),
        ("novelties", [reduce(merge, LIFE)]),
        ("incidents", [{**incidents(INCIDENT)["i1"], "ended": 0}]),
        ("rejected", [*rejected(REJECTED).values()]),
    ],
)
def test_the_strict_mapping_has_exactly_the_fields_of_full_documents(kind, documents):
    assert template_of(kind)["template"]["mappings"]["dynamic"] == "strict"
    assert _fields(template_of(kind)) == set().union(*documents)


@pytest.mark.parametrize(
    ("kind", "field", "schema"),
    [("novelties", "contributors", schemas.CONTRIBUTOR), ("incidents", "causes", schemas.CAUSE)],
)
def test_the_mapping_of_a_list_is_its_schema(kind, field, schema):
    mapping = template_of(kind)["template"]["mappings"]["properties"][field]
    assert set(mapping["properties"]) == set(schema.names)


@pytest.mark.parametrize(
    ("records", "schema"),
    [
        ([STATISTICS, {"control": {}, "time_unix_nano": 0, "part": 1, "parts": 2}], schemas.STATISTICS),
        ([STATISTICS["statistics"]], schemas.STATISTIC),
        ([NOVELTY, {"feedback": "not-anomalous"}], schemas.NOVELTIES),
        (NOVELTY["contributors"], schemas.CONTRIBUTOR),
        ([INCIDENT], schemas.INCIDENTS),
        (INCIDENT["causes"], schemas.CAUSE),
        (INCIDENT["members"], schemas.MEMBER),
        ([REJECTED, {"batch": "", "part": 0}], schemas.REJECTED),
    ],
)
def test_these_records_have_every_field_of_their_schema(records, schema):
    assert set().union(*records) | {"watermark_unix_nano"} == set(schema.names) | {"watermark_unix_nano"}


def test_the_template_knows_every_measure_of_a_window():
    mapped = template_of("statistics")["template"]["mappings"]["properties"]["window"]["properties"]
    kinds = {"StringType()": "keyword", "DoubleType()": "double", "LongType()": "long"}
    measures = {field.name: kinds[repr(field.dataType)] for field in schemas.WINDOW.fields}
    times = {f"{bound}_unix_nano": measures.pop(f"{bound}_unix_nano") for bound in ("start", "end")}
    expected = measures | {name.removesuffix("_unix_nano"): "date" for name in times}
    assert {name: field["type"] for name, field in mapped.items()} == expected


def test_a_document_of_version_0_1_0_gets_the_present_name_of_its_field():
    assert upgrade({"machine": "vm-1", "told": 5}) == {"machine": "vm-1", "alerted": 5}
