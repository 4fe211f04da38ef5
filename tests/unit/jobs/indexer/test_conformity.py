import pytest
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, LongType, MapType, StringType, StructField, StructType

from jobs.indexer.conformity import check, require

SCHEMA = StructType(
    [
        StructField("id", StringType()),
        StructField("count", LongType()),
        StructField("known", BooleanType()),
        StructField("inner", StructType([StructField("size", DoubleType())])),
        StructField("labels", MapType(StringType(), StringType())),
        StructField("column", ArrayType(DoubleType())),
        StructField("rows", ArrayType(MapType(StringType(), StringType()))),
    ]
)


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"id": None, "unknown": [1, {}]},
        {"id": "a", "count": 1, "known": True, "inner": {"size": 1}, "labels": {"a": None, "b": "c"}},
        {"column": [1, 2.5, None], "rows": [{"a": "b"}, None]},
    ],
)
def test_what_fits_the_schema_passes(record):
    check(record, SCHEMA)


@pytest.mark.parametrize(
    ("record", "field"),
    [
        ([], "object"),
        ("text", "object"),
        ({"id": 5}, "id"),
        ({"count": 1.5}, "count"),
        ({"count": True}, "count"),
        ({"known": 1}, "known"),
        ({"inner": []}, "inner"),
        ({"inner": {"size": "1"}}, "inner.size"),
        ({"labels": {"a": 1}}, "labels"),
        ({"labels": []}, "labels"),
        ({"column": 1.0}, "column"),
        ({"column": [1.0, "x"]}, "column"),
        ({"rows": [{"a": {}}]}, "rows"),
    ],
)
def test_what_does_not_is_named(record, field):
    with pytest.raises(TypeError, match=field):
        check(record, SCHEMA)


def test_a_field_that_must_be_there_is_named():
    require({"a": 0, "b": ""}, "a", "b")
    with pytest.raises(KeyError, match="b"):
        require({"a": 0, "b": None}, "a", "b")
