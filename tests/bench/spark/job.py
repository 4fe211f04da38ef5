"""Runs a stage of the chain in stock Spark Structured Streaming until it is killed: nothing of ours, Spark's own sink.

That sink writes each record at least once: a micro-batch that fails in its middle is written again.

Example: python -m tests.bench.spark.job enrichment topic=telemetry.otlp.metrics bootstrap=127.0.0.1:9092 ...
"""

import os
import sys
from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from infra.jars import spark_jars

WINDOW = "10 seconds"
MAX_OFFSETS = "KAPPA_MAX_OFFSETS_PER_TRIGGER"  # so that a backlog is read in as many micro-batches as by ours
SETTINGS = {
    "spark.master": "local[2]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",  # as many as cores: its default is 200
    # Its default for state, in memory, is its fastest while all open windows fit, as they do here.
}
SINK = {"compression.type": "lz4", "linger.ms": "50", "batch.size": "262144"}

_ATTRIBUTES = "ARRAY<STRUCT<key: STRING, value: STRUCT<stringValue: STRING>>>"
_POINTS = f"ARRAY<STRUCT<attributes: {_ATTRIBUTES}, timeUnixNano: STRING, asDouble: DOUBLE, asInt: STRING>>"
_METRIC = (
    f"STRUCT<name: STRING, unit: STRING, gauge: STRUCT<dataPoints: {_POINTS}>,"
    f" sum: STRUCT<dataPoints: {_POINTS}, aggregationTemporality: INT, isMonotonic: BOOLEAN>>"
)
REQUEST = f"resourceMetrics ARRAY<STRUCT<scopeMetrics: ARRAY<STRUCT<metrics: ARRAY<{_METRIC}>>>>>"
FACTS = "type STRING, site STRING, hypervisor STRING, tenant STRING, role STRING"
EVENT = "machine STRING, time_unix_nano BIGINT, series STRING, name STRING, unit STRING, value DOUBLE"

Options = Mapping[str, str]


def enrichment(telemetry: DataFrame, options: Options) -> DataFrame:
    """Decode OTLP metrics, flatten, add the machine's facts of now, tell late events apart: a record a data point."""
    point = telemetry.select(
        F.col("key").cast("string").alias("machine"),
        F.from_json(F.col("value").cast("string"), REQUEST).alias("request"),
        F.concat_ws("-", "topic", "partition", "offset").alias("id"),
        F.unix_millis("timestamp").alias("timestamp_unix_milli"),
        "partition",
    )
    for name, inner in (("r", "request.resourceMetrics"), ("s", "r.scopeMetrics"), ("m", "s.metrics")):
        point = point.withColumn(name, F.explode(inner))
    point = point.withColumn("p", F.explode(F.coalesce("m.gauge.dataPoints", "m.sum.dataPoints")))
    time = F.col("p.timeUnixNano").cast("long")
    is_late = F.expr("time_unix_nano div 1000000") < F.col("timestamp_unix_milli") - int(options["lateness_ms"])
    event = point.select(
        "partition",
        "machine",
        "id",
        "timestamp_unix_milli",
        time.alias("time_unix_nano"),
        _series().alias("series"),
        "m.name",
        "m.unit",
        F.coalesce("p.asDouble", F.col("p.asInt").cast("double")).alias("value"),
        F.col("m.sum.aggregationTemporality").alias("temporality"),
        F.col("m.sum.isMonotonic").alias("monotonic"),
        "p.attributes",
    )
    joined = event.join(F.broadcast(_inventory(telemetry.sparkSession, options)), on="machine", how="left")
    value = F.to_json(F.struct(*(name for name in joined.columns if name != "partition")))
    topic = F.when(is_late, f"{options['out']}.late").otherwise(options["out"])
    # In the partition that it comes from, so that what is of one machine stays in order.
    return joined.select(F.col("machine").alias("key"), value.alias("value"), topic.alias("topic"), "partition")


def _source(options: Options, topic: str) -> dict[str, str]:
    """All of a topic, as a stream or as a table."""
    return {"kafka.bootstrap.servers": options["bootstrap"], "subscribe": topic, "startingOffsets": "earliest"}


def _series() -> Column:
    """The name with its attributes, of which there are two at most: functions of lists would be interpreted."""
    each = (F.get("p.attributes", F.lit(at)) for at in range(2))
    first, second = (F.concat_ws("=", one["key"], one["value"]["stringValue"]) for one in each)
    count = F.size("p.attributes")
    one, two = (F.concat(F.lit("{"), of, F.lit("}")) for of in (first, F.concat_ws(",", first, second)))
    return F.concat("m.name", F.when(count == 1, one).when(count == 2, two).otherwise(""))


def _inventory(spark: SparkSession, options: Options) -> DataFrame:
    """The newest facts of each machine; as a table of no stream, they are read again for each micro-batch."""
    records = spark.read.format("kafka").options(**_source(options, options["inventory"])).load()
    machine = F.col("key").cast("string").alias("machine")
    newest = records.groupBy(machine).agg(F.max_by("value", "offset").alias("value"))
    return newest.select("machine", F.from_json(F.col("value").cast("string"), FACTS).alias("inventory"))


def statistics(events: DataFrame, options: Options) -> DataFrame:
    """Windows of 10 s once they are complete: a record a series."""
    event = events.select(F.from_json(F.col("value").cast("string"), EVENT).alias("event")).select("event.*")
    timed = event.withColumn("time", F.timestamp_micros(F.expr("time_unix_nano div 1000")))
    window = F.window("time", WINDOW)
    found = (
        timed.withWatermark("time", f"{options['lateness_ms']} milliseconds")
        .groupBy("machine", "series", "name", "unit", window)
        .agg(
            F.count("value").alias("count"),
            F.sum("value").alias("sum"),
            F.avg("value").alias("mean"),
            F.var_samp("value").alias("variance"),
            F.min("value").alias("min"),
            F.max("value").alias("max"),
        )
    )
    bounds = ((F.unix_micros(f"window.{side}") * 1000).alias(f"{side}_unix_nano") for side in ("start", "end"))
    value = F.to_json(F.struct(*bounds, *(name for name in found.columns if name != "window")))
    return found.select(F.col("machine").alias("key"), value.alias("value"), F.lit(options["out"]).alias("topic"))


STAGES: dict[str, Callable[[DataFrame, Options], DataFrame]] = {"enrichment": enrichment, "statistics": statistics}


def main(stage: str, *arguments: str) -> None:
    """Start the stage and wait; a micro-batch begins when the one before has ended: its quickest trigger."""
    options = dict(argument.split("=", 1) for argument in arguments)
    jars = ",".join(map(str, spark_jars()))
    builder = SparkSession.builder.config("spark.jars", jars).config("spark.driver.memory", options["memory"])
    spark = builder.config(map=SETTINGS).getOrCreate()
    source = spark.readStream.format("kafka").options(**_source(options, options["topic"]))
    if most := os.environ.get(MAX_OFFSETS):
        source = source.option("maxOffsetsPerTrigger", most)
    kafka = {f"kafka.{name}": value for name, value in SINK.items()}
    query = (
        STAGES[stage](source.load(), options)
        .writeStream.format("kafka")
        .options(**kafka, **{"kafka.bootstrap.servers": options["bootstrap"]})
        .option("checkpointLocation", options["checkpoint"])
        .start()
    )
    print('"started"', flush=True)
    query.awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
