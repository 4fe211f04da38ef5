"""A micro-batch of a fold without effect, in which a JVM loads its classes and starts its Python processes.

A fold's first micro-batch takes twenty seconds of two cores, the next one a sixth of that. A copy of a job that takes
over from one at work does the first one before, on records that are none: then nobody waits for it.
"""

import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import structlog
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from connectors.sinks.kafka import in_order

SECONDS = 120.0  # after which it is given up

log = structlog.get_logger()


def rows(spark: SparkSession, topic: str) -> DataFrame:
    """A stream with the columns of Kafka's: two records of each micro-batch, which no fold can use."""
    number = F.col("value").cast("int")
    return (
        spark.readStream.format("rate-micro-batch")
        .name("rehearsal")
        .option("rowsPerBatch", 2)
        .load()
        .select(
            F.lit(b"").alias("key"),
            F.lit(b"").alias("value"),
            F.lit(topic).alias("topic"),
            number.alias("partition"),
            F.col("value").alias("offset"),
            "timestamp",
            F.expr("cast(array() as array<struct<key:string,value:binary>>)").alias("headers"),
        )
    )


def rehearse(frame: DataFrame, scratch: Path) -> None:
    """Run one micro-batch of a stream that the sink could write, with a checkpoint below `scratch` that is deleted.

    What fails is logged: the job itself may still do.
    """
    done, began = threading.Event(), time.monotonic()

    def write(batch: DataFrame, _: int) -> None:
        in_order(batch).write.format("noop").mode("overwrite").save()
        done.set()

    with TemporaryDirectory(dir=scratch, prefix="rehearsal-") as folder:
        query = frame.writeStream.option("checkpointLocation", folder).foreachBatch(write).start()
        while query.isActive and not done.wait(0.1) and time.monotonic() - began < SECONDS:
            pass
        failure = query.exception()
        query.stop()
    if not done.is_set():
        log.warning("no rehearsal", reason=str(failure or f"not done after {SECONDS:g} s")[:400])
        return
    log.info("rehearsed", seconds=round(time.monotonic() - began, 1))
