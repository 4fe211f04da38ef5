"""`make bench-sink`: our transactional sink beside Spark's own Kafka sink, same rows, same session, same broker.

Rounds alternate, so that other work on the machine hits both alike; each round gives one ratio, and their median is the
result. Both write the same cached frame to the same topic, in the same order: ours sorts by itself, for Spark's the
frame is sorted. What Spark's does without order is measured, too.
"""

import statistics
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import orjson
import typer
from confluent_kafka.admin import NewTopic
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.progress import Progress

from connectors.kafka.admin import connect
from connectors.sinks.kafka import SinkSettings, TransactionalSink, in_order
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings

DEMANDED = 0.9
TASKS = 4

app = typer.Typer(add_completion=False)


def frame(spark: SparkSession, rows: int, topic: str) -> DataFrame:
    """`rows` JSON records of about 200 bytes, of 1000 machines, in the sink's columns."""
    machine = F.format_string("machine-%04d", F.col("id") % 1000)
    event = F.struct(
        machine.alias("machine"),
        (F.lit(1_760_000_000_000_000_000) + F.col("id") * 1_000_000).alias("time_unix_nano"),
        F.lit("system.cpu.utilization{cpu=3,state=user}").alias("series"),
        (F.xxhash64("id") % 1_000_000 / 1e6).alias("value"),
        F.lit("a text that fills the record up to some 200 bytes").alias("body"),
    )
    return spark.range(0, rows, numPartitions=TASKS).select(
        F.lit(topic).alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        machine.alias("key"),
        F.to_json(event).alias("value"),
        (F.lit(1_760_000_000_000) + F.col("id")).alias("timestamp_ms"),
        F.lit(None).cast("array<struct<key: string, value: binary>>").alias("headers"),
    )


def write_by_spark(rows: DataFrame, bootstrap: str) -> None:
    """With the settings of its producer that ours has, but for exactly-once."""
    (
        rows.select("topic", "key", "value")
        .write.format("kafka")
        .option("kafka.bootstrap.servers", bootstrap)
        .option("kafka.acks", "all")
        .option("kafka.compression.type", "lz4")
        .option("kafka.linger.ms", "20")
        .option("kafka.batch.size", str(512 * 1024))
        .save()
    )


@contextmanager
def broker(home: Path, running: str | None) -> Iterator[str]:
    """The address of the running broker, or of one for this run."""
    if running:
        yield running
        return
    servers = LocalServers(home, kafka_port=21790, elasticsearch_port=21795, jars=default_jars())
    servers.up()
    try:
        yield servers.bootstrap
    finally:
        servers.down()


def timed(write: Callable[[], object]) -> float:
    """How long it takes, in s."""
    start = time.perf_counter()
    write()
    return time.perf_counter() - start


def measure(spark: SparkSession, bootstrap: str, rows: int, rounds: int, progress: Progress) -> dict[str, object]:
    """Both sinks in turn; the first round of each warms up and is left out."""
    name = f"bench-sink-{uuid.uuid4().hex[:8]}"
    topic, markers = f"{name}.out", f"{name}.progress"
    admin = connect(bootstrap)
    for creation in admin.create_topics([NewTopic(topic, 4, 1), NewTopic(markers, TASKS, 1)]).values():
        creation.result()
    cached = frame(spark, rows, topic).cache()
    size = cached.select(F.avg(F.length("value"))).first()
    sink = TransactionalSink(SinkSettings(bootstrap, name, "bench", markers))
    task = progress.add_task("rounds", total=3 * (rounds + 1))
    seconds: dict[str, list[float]] = {"ours": [], "spark": [], "spark_unordered": []}
    for batch in range(rounds + 1):
        writes: dict[str, Callable[[], object]] = {
            "spark_unordered": partial(write_by_spark, cached, bootstrap),
            "spark": partial(write_by_spark, in_order(cached), bootstrap),
            "ours": partial(sink.write, cached, batch),
        }
        for name, write in writes.items():
            seconds[name].append(timed(write))
            progress.advance(task)
    for deletion in admin.delete_topics([topic, markers]).values():
        deletion.result()
    measured = {name: all_of[1:] for name, all_of in seconds.items()}
    return {
        "rows": rows,
        "bytes_per_row": round(size[0]) if size else None,
        "rounds": rounds,
        "rows_per_second": {name: round(rows / statistics.median(each)) for name, each in measured.items()},
        "ratio": ratio(measured["spark"], measured["ours"]),
        "ratio_to_unordered": ratio(measured["spark_unordered"], measured["ours"]),
        "demanded": DEMANDED,
    }


def ratio(theirs: list[float], ours: list[float]) -> float:
    """Our throughput as a share of theirs: the median over the rounds."""
    return round(statistics.median(their / our for their, our in zip(theirs, ours, strict=True)), 3)


@app.command()
def main(
    rows: Annotated[int, typer.Option(min=1, help="Rows of each round.")] = 1_000_000,
    rounds: Annotated[int, typer.Option(min=1, help="Measured rounds of each sink.")] = 7,
    bootstrap: Annotated[str | None, typer.Option(help="A broker that runs; without it one is started.")] = None,
    output: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("build/sink.json"),
) -> None:
    """Measure our sink against Spark's; exit code 1 if ours has less than 0.9 of its throughput.

    Example: python -m tests.bench.sink --rows 200000 --rounds 3
    """
    with tempfile.TemporaryDirectory() as folder, broker(Path(folder), bootstrap) as address:
        spark = open_session("bench-sink", Settings(home=Path(folder), spark_master="local[2]"))
        with Progress(console=Console(stderr=True)) as progress:
            report = measure(spark, address, rows, rounds, progress)
        spark.stop()
    output.parent.mkdir(parents=True, exist_ok=True)
    output.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2) + b"\n")
    Console().print_json(data=report)
    if report["ratio"] < DEMANDED:  # type: ignore[operator]
        raise typer.Exit(1)


if __name__ == "__main__":
    app()
