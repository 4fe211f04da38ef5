"""A prepared step gives of each frame what the step itself gives, though Spark plans it once."""

import pytest
from pyspark.errors import SparkRuntimeException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.prepared import Prepared


def rows(frame: DataFrame) -> list[tuple]:
    return sorted(map(tuple, frame.collect()))


def test_each_frame_has_its_own_rows_and_the_step_is_called_once(spark):
    calls = []

    def doubled(frame: DataFrame) -> DataFrame:
        calls.append(frame)
        return frame.withColumn("double", F.col("id") * 2).where("id % 2 = 1")

    prepared = Prepared(doubled)
    assert rows(prepared(spark.range(4))) == [(1, 2), (3, 6)]
    assert rows(prepared(spark.range(4, 8))) == [(5, 10), (7, 14)]
    assert rows(prepared(spark.range(0))) == []
    assert len(calls) == 1


def test_rows_are_shuffled_and_sorted_as_the_step_says(spark):
    def spread(frame: DataFrame) -> DataFrame:
        by_key = frame.withColumn("key", F.col("id") % 3).repartition(2, "key").sortWithinPartitions(F.desc("id"))
        return by_key.withColumn("task", F.spark_partition_id())

    prepared = Prepared(spread)
    for first in (0, 100):
        frame = spark.range(first, first + 50, numPartitions=3)
        assert list(map(tuple, prepared(frame).collect())) == list(map(tuple, spread(frame).collect()))
        assert prepared(frame)._jdf.queryExecution().toRdd().getNumPartitions() == 2


def test_another_frame_stays_as_it_was(spark):
    names = spark.createDataFrame([(1, "one"), (2, "two")], "id long, name string").persist()
    prepared = Prepared(lambda frame: frame.join(F.broadcast(names), "id", "left"))
    assert rows(prepared(spark.range(1, 3))) == [(1, "one"), (2, "two")]
    assert rows(prepared(spark.range(2, 4))) == [(2, "two"), (3, None)]


def test_a_frame_with_other_columns_gets_a_plan_of_its_own(spark):
    prepared = Prepared(lambda frame: frame.withColumn("columns", F.lit(",".join(frame.columns))))
    assert rows(prepared(spark.range(1))) == [(0, "id")]
    assert rows(prepared(spark.range(1).toDF("other"))) == [(0, "other")]


def test_steps_follow_on_each_other(spark):
    first = Prepared(lambda frame: frame.where("id > 1"))
    second = Prepared(lambda frame: frame.agg(F.sum("id").alias("sum")))
    assert [rows(second(first(spark.range(n)))) for n in (3, 4, 5)] == [[(2,)], [(5,)], [(9,)]]


def lengths(frame: DataFrame) -> DataFrame:
    """With functions of lists, which Spark doesn't compile, and with a parser and a writer, which have state."""
    parsed = F.from_json(F.format_string('{"n":[%d,%d]}', "id", F.col("id") + 1), "n array<long>")
    long = F.transform(parsed["n"], lambda n: F.repeat(F.lit("x"), n.cast("int")))
    return frame.select("id", F.to_json(F.struct(long.alias("long"))).alias("json"))


def test_code_is_kept_and_serves_several_tasks_at_once(spark):
    prepared = Prepared(lengths)
    for first in (0, 100, 200):
        frame = spark.range(first, first + 100, numPartitions=8)
        assert rows(prepared(frame)) == rows(lengths(frame))
    assert "Rows[" in prepared(frame)._jdf.queryExecution().logical().rdd().toDebugString()


def test_code_that_made_a_large_row_or_failed_is_followed_by_new_code(spark):
    def short(frame: DataFrame) -> DataFrame:
        return lengths(frame).withColumn(
            "id", F.when(F.col("id") == 13, F.raise_error(F.lit("13"))).otherwise(F.col("id"))
        )

    prepared = Prepared(short)
    large = spark.range(1_500_000, 1_500_001)
    assert [len(json) for _, json in rows(prepared(large))] == [len('{"long":["",""]}') + 3_000_001]
    with pytest.raises(SparkRuntimeException, match="13"):
        prepared(spark.range(10, 20, numPartitions=1)).collect()
    assert rows(prepared(spark.range(3))) == rows(lengths(spark.range(3)))
