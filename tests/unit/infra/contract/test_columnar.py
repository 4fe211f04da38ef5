import pytest

from infra.contract.columnar import event_columns, to_columns, to_rows

ROWS = [{"series": "cpu", "count": 2, "mean": 0.5}, {"series": "disk <*> failed", "count": 0, "severity_number": 17}]
COLUMNS = {
    "series": ["cpu", "disk <*> failed"],
    "count": [2, 0],
    "mean": [0.5, None],
    "severity_number": [None, 17],
}


def test_rows_become_columns_and_columns_rows():
    assert to_columns(ROWS) == COLUMNS
    assert to_rows(COLUMNS) == ROWS


def test_no_rows_have_no_columns():
    assert to_columns([]) == {}
    assert to_rows({}) == []


def test_columns_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="shorter"):
        to_rows({"series": ["cpu", "load"], "count": [1]})


def test_a_column_of_nulls_is_absent():
    assert to_columns([{"series": "cpu", "unit": None}]) == {"series": ["cpu"]}


def test_of_events_what_stays_the_same_comes_last():
    found = event_columns([{"name": "cpu", "series": "cpu"}, {"series": "load", "value": 1.0, "time_unix_nano": 7}])
    assert list(found.items()) == [
        ("time_unix_nano", [None, 7]),
        ("value", [None, 1.0]),
        ("series", ["cpu", "load"]),
        ("name", ["cpu", None]),
    ]


def test_labels_say_which_row_of_the_last_columns_an_event_has():
    columns = {"value": [1.0, 2.0, 3.0], "labels": [1, 0, 1], "series": ["a", "b"], "unit": [None, "s"]}
    assert to_rows(columns) == [
        {"value": 1.0, "series": "b", "unit": "s"},
        {"value": 2.0, "series": "a"},
        {"value": 3.0, "series": "b", "unit": "s"},
    ]
