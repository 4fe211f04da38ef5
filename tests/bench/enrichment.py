"""`make bench-enrichment`: CPU time an event of decoding and of the whole enrichment, without Kafka.

Records, cached in memory, go through each decoder in turn, so that other work on the machine hits all alike. CPU is
that of the JVM and the Python workers together; the median of the rounds counts.
"""

import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Any

import orjson
import psutil
import pyarrow as pa
import typer
from google.protobuf import json_format  # type: ignore[import-untyped]
from google.protobuf.message import Message  # type: ignore[import-untyped]
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from connectors import otlp
from connectors.decoders.registry import decoder_of
from connectors.otlp import Instrument, LogLine
from infra.contract.topics import load_topics
from jobs.enrichment.inventory import SCHEMA
from jobs.enrichment.transform import enrichment
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings

POINTS, LINES = 30, 7
NOW = 1_795_245_484
app = typer.Typer(add_completion=False)


def request() -> bytes:
    """One machine's scrape of 30 points, 6.6 kB, as an OpenTelemetry Collector writes it."""
    states = ("user", "idle", "system")
    cpu = [
        Instrument("system.cpu.utilization", "1", attributes=(("cpu", str(i // 3)), ("state", states[i % 3])))
        for i in range(20)
    ]
    network = [
        Instrument("system.network.io", "By", "sum", True, (("device", f"eth{i // 2}"), ("direction", "rt"[i % 2])))
        for i in range(10)
    ]
    points = [*((i, 0.123456) for i in cpu), *((i, 12345) for i in network)]
    resource = {"host.name": "vm-1", "os.type": "linux", "service.namespace": "dc1"}
    return orjson.dumps(otlp.metrics(resource, "hostmetrics", points, NOW * 10**9, NOW * 10**9 + 222_354))


def line() -> bytes:
    """One data point as a record of our own."""
    event = {"time_unix_nano": NOW * 10**9, "machine": "vm-1", "name": "system.cpu.utilization", "value": 0.25}
    return orjson.dumps({**event, "unit": "1", "attributes": {"cpu": "1", "state": "idle"}})


def log_lines() -> bytes:
    """Seven log lines of one service, 2.6 kB, as an OpenTelemetry Collector writes them."""
    bodies = (
        "[instance: 38101a0b-2096-447d-96ea-a692162415ae] VM Started (Lifecycle Event)",
        '10.11.10.1 "GET /v2/54fadb412c4e40cdbaed9335e4c35a9e/servers/detail HTTP/1.1" status: 200 len: 1893',
        "Accepted publickey for root from 10.0.0.7 port 50514 ssh2",
        "Active base files: /var/lib/nova/instances/_base/a489c868f0c37da93b76227c91bb03908ac0e742",
        "neutron agent report_state took 12 ms",
        "connection to the message bus was lost, trying again in 5 s",
        "Total memory: 64172 MB, used: 512.00 MB",
    )
    lines = [
        LogLine(NOW * 10**9, body, "INFO", 9, (("log.file.name", "nova.log"), ("process.pid", str(2931 + number))))
        for number, body in enumerate(bodies)
    ]
    return orjson.dumps(otlp.logs({"host.name": "vm-1", "service.name": "nova"}, "nova", lines))


def protobuf(value: bytes, request: type[Message] = ExportMetricsServiceRequest) -> bytes:
    """The same request in binary."""
    return bytes(json_format.Parse(value, request()).SerializeToString())


def records(spark: SparkSession, value: bytes, count: int, topic: str) -> DataFrame:
    """`count` rows of the Kafka source, cached."""
    frame = spark.range(0, count, numPartitions=2).select(
        F.lit(None).cast("binary").alias("key"),
        F.lit(bytearray(value)).alias("value"),
        F.lit(topic).alias("topic"),
        F.lit(0).alias("partition"),
        F.col("id").alias("offset"),
        F.timestamp_seconds(F.lit(NOW)).alias("timestamp"),
        F.lit(1).alias("timestampType"),
    )
    cached = frame.cache()
    cached.count()
    return cached


def run(frame: DataFrame) -> float:
    """CPU seconds of computing it, thrown away."""
    before = cpu_seconds()
    frame.write.format("noop").mode("overwrite").save()
    return cpu_seconds() - before


def cpu_seconds() -> float:
    """Of this process's children: the JVM, and the Python workers below it."""
    times = [child.cpu_times() for child in psutil.Process().children(recursive=True)]
    return sum(time.user + time.system for time in times)


def stages(spark: SparkSession, count: int) -> dict[str, tuple[int, DataFrame]]:
    """What is measured: name -> (events, the frame to compute)."""
    topics = load_topics()
    inventory = spark.createDataFrame(pa.Table.from_pylist([], schema=SCHEMA))
    inputs = {
        "otlp_metrics_json": (request(), "telemetry.otlp.metrics", POINTS),
        "otlp_metrics_proto": (protobuf(request()), "telemetry.otlp.metrics.proto", POINTS),
        "lines_json": (line(), "telemetry.lines", 1),
        "otlp_logs_json": (log_lines(), "telemetry.otlp.logs", LINES),
        "otlp_logs_proto": (protobuf(log_lines(), ExportLogsServiceRequest), "telemetry.otlp.logs.proto", LINES),
    }
    found: dict[str, tuple[int, DataFrame]] = {}
    for name, (value, topic, points) in inputs.items():
        raw = records(spark, value, count, topic)
        decoded = decoder_of(name).decode(raw)
        found[f"{name}: decoded"] = (count * points, decoded)
        found[f"{name}: enriched"] = (count * points, enrichment(topics)(decoded, inventory))
    return found


@app.command()
def main(
    count: Annotated[int, typer.Option(help="Records of each format.")] = 10_000,
    rounds: Annotated[int, typer.Option(help="The first is left out.")] = 5,
    report: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/enrichment.json"),
) -> None:
    """Measure each stage in turn, some rounds."""
    console = Console(width=120)
    with tempfile.TemporaryDirectory() as home:
        spark = open_session("bench-enrichment", Settings(home=Path(home)))
        measured = stages(spark, count)
        seconds: dict[str, list[float]] = {name: [] for name in measured}
        for _ in range(rounds):
            for name, (events, frame) in measured.items():
                seconds[name].append(run(frame))
                console.print(f"{name}: {seconds[name][-1] / events * 1e6:.2f} µs")
        spark.stop()
    found: dict[str, Any] = {
        name: round(statistics.median(seconds[name][1:]) / events * 1e6, 2) for name, (events, _) in measured.items()
    }
    table = Table("stage", "µs of CPU an event", box=None)
    for name, cost in found.items():
        table.add_row(name, str(cost))
    console.print(table)
    report.parent.mkdir(exist_ok=True)
    report.write_bytes(orjson.dumps({"cpu_us_per_event": found, "points_per_record": POINTS, "records": count}))


if __name__ == "__main__":
    app()
