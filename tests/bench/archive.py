"""`make bench-archive`: bytes and CPU time of the archive's raw log by compression, side by side in one run.

Each round writes the same scrapes, 31 data points a record, as the archive does: through Delta, by day and topic.
"""

import random
import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console

from connectors.sinks.delta import append
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from ops.simulator import cloud
from tests.bench.chain.load import scraped
from tests.bench.enrichment import cpu_seconds

CODECS = ("snappy", "zstd")
STEP = 10_000_000_000  # ns between two scrapes

app = typer.Typer()


def frame(spark: SparkSession, records: int) -> DataFrame:
    """Scrapes of a thousand machines as Kafka's rows, kept in memory."""
    random.seed(1)
    fleet = [scraped(machine, singles=False) for machine in cloud.build(1_000)]
    start = 1_790_000_000_000_000_000
    values = [
        (one.name, one.scrape(start + step * STEP, step)) for step in range(-(-records // len(fleet))) for one in fleet
    ][:records]
    numbered = spark.createDataFrame(values, "key binary, value binary").withColumn(
        "offset", F.monotonically_increasing_id()
    )
    time = F.timestamp_seconds(F.lit(start // 10**9) + (F.col("offset") / 100).cast("long"))
    rows = numbered.select(
        F.lit("telemetry.otlp.metrics").alias("topic"),
        F.lit(0).alias("partition"),
        "offset",
        time.alias("timestamp"),
        F.to_date(time).alias("date"),
        "key",
        "value",
        F.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
    ).repartition(2)
    cached = rows.cache()
    cached.count()
    return cached


def measure(rows: DataFrame, folder: Path, codec: str, number: int) -> dict[str, float]:
    """Write the rows into a table of its own; CPU seconds of all processes, and the bytes of its files."""
    rows.sparkSession.conf.set("spark.sql.parquet.compression.codec", codec)
    path, before = folder / f"{codec}-{number}", cpu_seconds()
    append(rows, str(path), "bench", 0, ("date", "topic"))
    spent = cpu_seconds() - before
    return {"cpu_seconds": spent, "bytes": sum(file.stat().st_size for file in path.rglob("*.parquet"))}


@app.command()
def main(
    records: Annotated[int, typer.Option(min=1000, help="Scrapes of 31 data points.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="Measured ones, after two that aren't.")] = 7,
    report: Annotated[Path, typer.Option("--json", help="Where the report goes.")] = Path("build/archive.json"),
) -> None:
    """Measure; the report has the medians.

    Example: python -m tests.bench.archive --records 10000 --rounds 5
    """
    found: dict[str, list[dict[str, float]]] = {codec: [] for codec in CODECS}
    with tempfile.TemporaryDirectory() as folder:
        spark = open_session("bench-archive", Settings(home=Path(folder), spark_master="local[2]", driver_memory="3g"))
        rows = frame(spark, records)
        for number in range(rounds + 2):
            for codec in CODECS:
                found[codec].append(measure(rows, Path(folder), codec, number))
        spark.stop()
    facts: dict[str, Any] = {codec: _medians(rounds_of[2:], records * 31) for codec, rounds_of in found.items()}
    facts = {"records": records, "rounds": rounds, **facts}
    report.parent.mkdir(parents=True, exist_ok=True)
    report.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))
    Console().print_json(data=facts)


def _medians(rounds: list[dict[str, float]], events: int) -> dict[str, float]:
    return {
        "bytes_an_event": round(statistics.median(one["bytes"] for one in rounds) / events, 2),
        "cpu_us_an_event": round(statistics.median(one["cpu_seconds"] for one in rounds) / events * 1e6, 3),
    }


if __name__ == "__main__":
    app()
