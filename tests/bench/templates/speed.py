"""Lines a second and core that become templates inside Spark: CPU time of the JVM with them, less that without them."""

import statistics
import tempfile
from pathlib import Path

import psutil
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from jobs.enrichment.templates import template
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings

ROUNDS = 5
WARM_UP = 2
COPIES = 20  # of each line


def lines_per_second(sets: dict[str, list[str]]) -> dict[str, int]:
    """For each set of lines, how many Spark gives templates in a second of CPU time; the median of the rounds."""
    with tempfile.TemporaryDirectory() as home:
        spark = open_session("bench-templates", Settings(home=Path(home), spark_master="local[1]"))
        frames = {}
        for name, lines in sets.items():
            once = spark.createDataFrame(pa.table({"body": lines}))
            bare = once.crossJoin(spark.range(COPIES)).select("body").coalesce(1).cache()
            frames[name] = bare, bare.withColumn("body", template(F.col("body")))
            bare.count()
        net: dict[str, list[float]] = {name: [] for name in sets}
        for _ in range(WARM_UP + ROUNDS):
            for name, (bare, masked) in frames.items():
                net[name].append(_cpu_seconds(masked) - _cpu_seconds(bare))
        spark.stop()
    return {name: round(len(sets[name]) * COPIES / statistics.median(net[name][WARM_UP:])) for name in sets}


def _cpu_seconds(frame: DataFrame) -> float:
    """CPU time, of this process's children (the JVM and what it starts), of computing a frame that is thrown away."""
    before = _children()
    frame.write.format("noop").mode("overwrite").save()
    return _children() - before


def _children() -> float:
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return sum(time.user + time.system for time in times)
