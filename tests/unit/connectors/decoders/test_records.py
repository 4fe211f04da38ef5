"""What the Python decoders and their references are made of, without Spark."""

import json
import math

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.decoders import records
from connectors.decoders.otlp_values import labels
from connectors.decoders.records import UnusableError, render, series
from infra.contract.columnar import to_columns
from tests.unit.connectors.decoders import json_values, reference, reference_lines
from tests.unit.connectors.decoders.json_values import double, every, integer, time

T = 1795245484412222354


@pytest.mark.parametrize(
    ("value", "number"),
    [("5", 5), (5, 5), ("-5", -5), (" 5 ", 5), ("1_0", None), ("1.0", None), (1.0, None), (True, None), (None, None)],
)
def test_integers(value, number):
    assert integer(value) == number


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, str(2**63), "x", "", [], {}])
def test_what_is_no_64_bit_integer(value):
    assert integer(value) is None


@pytest.mark.parametrize(("value", "number"), [(0, 0), (2**63 - 1, 2**63 - 1), (2**63, None), (2**64 - 1, None)])
def test_unsigned_integers(value, number):
    assert records.integer(value) == number


@pytest.mark.parametrize(("value", "nanoseconds"), [(T, T), (0, None), (2**63, None)])
def test_times_of_protobuf(value, nanoseconds):
    assert records.time(value) == nanoseconds


@pytest.mark.parametrize(("value", "nanoseconds"), [(str(T), T), (T, T), ("0", None), (-1, None), (True, None)])
def test_times(value, nanoseconds):
    assert time(value) == nanoseconds


@pytest.mark.parametrize(
    ("value", "number"), [(1, 1.0), ("1.5", 1.5), ("-Infinity", -math.inf), ("1_0", None), (True, None)]
)
def test_doubles(value, number):
    assert double(value) == number


def test_a_number_beyond_all_doubles_is_not_finite_or_none():
    assert double("9" * 400) == math.inf
    assert double(int("9" * 400)) is None


def test_a_list_is_converted_whole_or_not():
    assert every(integer, ["1", 2]) == [1, 2]
    assert every(integer, ["1", None]) == [1, None]
    assert every(integer, ["1", "x"]) is None
    assert every(integer, None) is None
    with pytest.raises(TypeError):
        every(integer, "12")


def test_a_series_sorts_its_keys_and_a_key_may_have_no_value():
    assert series("m", [("b", "2"), ("a", None), ("a", "1")]) == "m{a,a=1,b=2}"
    assert series("m", []) == "m"


def test_of_a_key_that_stands_twice_the_first_counts():
    assert labels("m", (("k", "1"), ("k", "2")), ()) == ("m{k=1,k=2}", {"k": "1"})


def test_sound_events_are_told_by_the_range_of_their_times():
    events = [
        {"series": "n", "time_unix_nano": T + 5, "value": 1.0},
        {"series": "m", "time_unix_nano": T, "value": 2.0},
    ]
    columns = {"time_unix_nano": [T, T + 5], "value": [2.0, 1.0], "series": ["m", "n"]}
    assert render(events) == {
        "json": orjson.dumps(columns),
        "first_unix_nano": T,
        "last_unix_nano": T + 5,
        "series_bytes": 1,
        "unit_bytes": 0,
    }


def test_the_longest_series_and_unit_are_told_in_bytes():
    series = ["n", "\u20ac" * 10, "x" * 29]
    events = [
        {"series": one, "time_unix_nano": T, "value": 1.0, "unit": unit}
        for one, unit in zip(series, ["By", None, "\u00e9"], strict=True)
    ]
    found = render(events)
    assert (found["series_bytes"], found["unit_bytes"]) == (30, 2)


@pytest.mark.parametrize(
    ("event", "written"),
    [
        ({"time_unix_nano": None, "value": 1.0}, {"time_unix_nano": None, "value": 1.0}),
        ({"time_unix_nano": T, "value": None}, {"time_unix_nano": T, "value": None}),
        ({"time_unix_nano": T, "value": math.nan}, {"time_unix_nano": T, "value": "NaN"}),
        ({"time_unix_nano": T, "value": math.inf}, {"time_unix_nano": T, "value": "Infinity"}),
        ({"time_unix_nano": T, "value": -math.inf}, {"time_unix_nano": T, "value": "-Infinity"}),
    ],
)
@pytest.mark.parametrize("others", [[], [{"time_unix_nano": T, "value": 1.0}]])
def test_an_unsound_event_leaves_the_batch_to_be_judged_one_by_one(event, written, others):
    found = render([one | {"series": "m"} for one in (*others, event)])
    assert json.loads(found.pop("json")) == to_columns([one | {"series": "m"} for one in (*others, written)])
    assert found == {"series_bytes": 1, "unit_bytes": 0}


def test_bytes_that_are_not_utf8_are_replaced():
    [batch] = reference_lines.read(b'{"time_unix_nano":1,"machine":"m","name":"caf\xe9","value":1}')
    assert batch.events[0]["name"] == "caf\ufffd"


@pytest.mark.parametrize("value", [b"", b"{", b"{} {}", b"NaN", b'"\\ud800"', b"\xff", b"[" * 100_000])
def test_what_is_no_json(value):
    with pytest.raises(UnusableError, match="not_json"):
        json_values.parse(value)


# fmt: off
NAMES = (
    "resource", "attributes", "key", "value", "stringValue", "scopeMetrics", "metrics", "name", "unit", "gauge", "sum",
    "histogram", "summary", "exponentialHistogram", "dataPoints", "timeUnixNano", "asDouble", "asInt", "count",
    "positive", "bucketCounts", "quantileValues", "body", "machine",
)
# fmt: on
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@given(documents)
def test_whatever_the_json_is_there_are_rows_or_a_code(document):
    for read, value in (
        (reference_lines.read, document),
        (reference.read, document),
        (reference.read, {"resourceMetrics": [{"scopeMetrics": [{"metrics": [document]}]}]}),
        (reference.read, {"resourceMetrics": [{"resource": document, "scopeMetrics": document}]}),
    ):
        try:
            batches = read(json.dumps(value).encode())
        except UnusableError as error:
            assert str(error) in {"not_json", "not_otlp", "not_line"}
            continue
        metrics = [batch for batch in batches if batch.kind == "metric" and batch.events]
        for batch in metrics:
            series = json.loads(render(batch.events)["json"])["series"]
            assert [type(one) for one in series] == [str] * len(batch.events)
