import pytest
from jsonschema import Draft202012Validator, ValidationError
from pyspark.sql.types import StructType

from infra.contract.json_schema import json_schema
from infra.contract.schemas import SCHEMAS

EVENTS = {
    "id": "telemetry.lines/0/7/0",
    "machine": "vm-17",
    "kind": "metric",
    "resource": {"host.name": "vm-17"},
    "inventory": {"known": True, "type": "virtual", "site": "kista"},
    "source": {"topic": "telemetry.lines", "partition": 0, "offset": 7, "timestamp_unix_milli": 1_700_000_000_000},
    "events": {
        "time_unix_nano": [1_700_000_000_000_000_000, 1_700_000_000_000_000_000],
        "value": [0.5, None],
        "histogram": [None, {"count": 2, "bounds": [1.0], "counts": [1, 1], "quantiles": {"0.5": "1"}}],
        "series": ["cpu{state=user}", "latency"],
        "monotonic": [False, None],
    },
}


def validator(name):
    return Draft202012Validator(json_schema(name, SCHEMAS[name]))


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_schema_is_valid_and_holds_each_field(name):
    exported = json_schema(name, SCHEMAS[name])
    Draft202012Validator.check_schema(exported)
    assert exported["title"] == name
    assert list(exported["properties"]) == SCHEMAS[name].fieldNames()


def test_a_record_passes():
    validator("events").validate(EVENTS)
    validator("events").validate({"watermark_unix_nano": 1_700_000_000_000_000_000})


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"machine": 17}, ["machine"]),
        ({"machine": None}, ["machine"]),
        ({"events": {"value": ["high"]}}, ["events", "value", 0]),
        ({"events": {"time_unix_nano": [2**63]}}, ["events", "time_unix_nano", 0]),
        ({"events": []}, ["events"]),
        ({"resource": {"cpus": 4}}, ["resource", "cpus"]),
        ({"host": "vm-17"}, []),
        ({"source": {"partition": 2**31}}, ["source", "partition"]),
    ],
)
def test_a_wrong_record_is_refused_where_it_is_wrong(change, path):
    with pytest.raises(ValidationError) as caught:
        validator("events").validate({**EVENTS, **change})
    assert list(caught.value.absolute_path) == path


def test_a_list_of_objects_that_is_no_column_has_no_null():
    validator("novelties").validate({"contributors": [{}]})
    with pytest.raises(ValidationError):
        validator("novelties").validate({"contributors": [None]})


def test_a_type_without_a_rule_is_an_error_and_not_a_hole():
    with pytest.raises(KeyError):
        json_schema("x", StructType().add("when", "date"))
