"""`make bench-archive`: bytes and CPU time of the archive's raw log by compression, side by side in one run.

Each round writes the same scrapes, 31 data points a record, as the archive does: through Delta, by day and topic. And
what each commit costs besides, by whether it notes all files of its table once more, which Delta does by default.
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


def measure_commits(rows: DataFrame, folder: Path, number: int) -> dict[str, dict[str, float]]:
    """Commit the same few rows so many times to each of two tables, by turns: what a commit of the second half costs.

    CPU seconds are of all processes, bytes those by which the table's log grew.
    """
    few = rows.where(F.col("offset") < 200).repartition(2).cache()
    found: dict[str, list[tuple[float, int]]] = {"true": [], "false": []}
    for batch in range(number):
        for is_noted, commits in found.items():
            rows.sparkSession.conf.set("spark.databricks.delta.allFilesInCrc.enabled", is_noted)
            path = folder / f"commits-{is_noted}"
            spent, held = cpu_seconds(), _log_bytes(path)
            append(few, str(path), "bench", batch, ("date", "topic"))
            commits.append((cpu_seconds() - spent, _log_bytes(path) - held))
    return {
        f"all files noted: {is_noted}": {
            "cpu_seconds": round(statistics.median(spent for spent, _ in commits[number // 2 :]), 3),
            "log_bytes": round(statistics.fmean(grown for _, grown in commits[number // 2 :])),
        }
        for is_noted, commits in found.items()
    }


def _log_bytes(path: Path) -> int:
    return sum(file.stat().st_size for file in path.glob("_delta_log/*") if file.is_file())


@app.command()
def main(
    records: Annotated[int, typer.Option(min=1000, help="Scrapes of 31 data points.")] = 20_000,
    rounds: Annotated[int, typer.Option(min=1, help="Measured ones, after two that aren't.")] = 7,
    commits: Annotated[int, typer.Option(min=20, help="To each of two tables.")] = 60,
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
        of_commits = measure_commits(rows, Path(folder), commits)
        spark.stop()
    facts: dict[str, Any] = {codec: _medians(rounds_of[2:], records * 31) for codec, rounds_of in found.items()}
    facts = {"records": records, "rounds": rounds, **facts, "commits": of_commits}
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
