"""`make bench-detector`: the detector's model, its state and memory, and its fold through Spark.

An update is one window of one series. A series is warm here when it has seen so many windows that all scales judge it.
A tenth of the series are log templates, whose lines are Poisson; the others are metrics with normal noise.
"""

import multiprocessing
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import orjson
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from rich.console import Console
from rich.table import Table

from infra.contract.columnar import to_columns
from jobs.detector.job import DetectorShard
from jobs.detector.model.anscombe import to_model_scale
from jobs.detector.model.arrays import Floats, Ints
from jobs.detector.model.machines import MachineModel
from jobs.detector.model.scales import BYTES_PER_SERIES, SCALES, Scales
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import fold
from jobs.runtime.fold import fold_partitions
from jobs.runtime.session import open_session
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import LATEST_MILLI

PER_MACHINE = 50  # series, a tenth of them log templates
FIRST = 180_000_000  # window number
WARM = 2 * SCALES[-1]  # windows
COPIES = 10
UNCOUNTED = 2  # batches in which the JVM compiles and all series are new
SCHEMA = (
    "topic string, partition int, offset long, value binary, timestamp timestamp,"
    " headers array<struct<key:string,value:binary>>"
)
app = typer.Typer(add_completion=False)


class Fleet:
    """Machines of PER_MACHINE series each; window after window of what they say."""

    def __init__(self, series: int, seed: int = 7) -> None:
        self.machines = series // PER_MACHINE
        self.rng = np.random.default_rng(seed)
        self.is_count = np.tile(np.arange(PER_MACHINE) % 10 == 0, self.machines)
        self.level = self.rng.uniform(5.0, 100.0, len(self.is_count))

    def values(self) -> Floats:
        noise = self.rng.standard_normal(len(self.level))
        return np.where(self.is_count, np.maximum(self.rng.poisson(self.level), 1), self.level * (1.0 + 0.05 * noise))

    def records(self, window: int, machines: range) -> list[bytes]:
        """Records of `statistics` as the statistics job writes them, and the window's watermark."""
        values = self.values().reshape(-1, PER_MACHINE)[machines.start : machines.stop].tolist()
        return [*map(partial(_record, window), machines, values), _watermark(window)]


def _record(window: int, machine: int, values: list[float]) -> bytes:
    end = window * 10 * 10**9
    bounds = {"kind": "tumbling", "size_seconds": 10.0, "start_unix_nano": end - 10 * 10**9, "end_unix_nano": end}
    facts = {"known": True, "type": "virtual", "site": "site-1", "hypervisor": f"host-{machine % 50}", "role": "AMF"}
    statistics = [_metric(n, value) if n % 10 else _log(n, int(value)) for n, value in enumerate(values)]
    name = f"vm-{machine}"
    record = {"id": f"{name}/10s/{end}", "machine": name, "inventory": facts, "window": bounds}
    return orjson.dumps(record | {"statistics": to_columns(statistics)})


def _metric(number: int, value: float) -> dict[str, Any]:
    same = ("mean", "min", "max", "first", "last", "p50", "p95", "p99")
    facts = {"series": f"gauge.{number}{{core={number}}}", "kind": "metric", "name": f"gauge.{number}", "unit": "1"}
    figures = {"attributes": {"core": str(number)}, "count": 2, "sum": 2 * value, "variance": 0.0, "missing": 0.0}
    return facts | figures | dict.fromkeys(same, value)


def _log(number: int, count: int) -> dict[str, Any]:
    return {"series": f"template {number} <num>", "kind": "log", "name": "log", "count": count}


def _watermark(window: int) -> bytes:
    return orjson.dumps({"watermark_unix_nano": window * 10 * 10**9})


class Models:
    """Both models of a shard: of the series, and of the machines as a whole."""

    def __init__(self, series: Scales, machines: MachineModel) -> None:
        self.series, self.machines = series, machines

    @classmethod
    def of(cls, fleet: Fleet) -> Self:
        """New ones of this fleet."""
        made = cls(Scales(DetectorSettings()), MachineModel())
        made.series.add(fleet.is_count, np.zeros(len(fleet.level), np.int64), FIRST)
        made.machines.grow(fleet.machines)
        made.machines.add(np.repeat(np.arange(fleet.machines), PER_MACHINE))
        return made

    def copies(self, number: int) -> "Models":
        """So many of each series and of each machine."""
        series = Scales(DetectorSettings(), {name: np.tile(one, number) for name, one in self.series.dump().items()})
        columns = {name: self._copies(name, one, number) for name, one in self.machines.dump().items()}
        return Models(series, MachineModel(columns))

    def _copies(self, name: str, column: Ints, number: int) -> Ints:
        """What is a number of a series or of a machine is another one in each copy."""
        size = {"rows": len(self.series), "machine": len(self.machines)}.get(name.rpartition("_")[2], 0)
        copy = np.repeat(np.arange(number), len(column))
        return (
            np.where(np.tile(column, number) >= 0, np.tile(column, number) + size * copy, -1)
            if size
            else np.tile(column, number)
        )

    def step(self, fleet: Fleet, first: int, windows: int, threshold: float) -> None:
        """Judge and learn so many windows."""
        rows, machine = np.arange(len(fleet.level)), np.repeat(np.arange(len(self.machines)), PER_MACHINE)
        samples = np.full(len(rows), 2.0)
        for window in range(first, first + windows):
            judgement = self.series.step(window, rows, fleet.values(), samples, threshold)[0]
            x = to_model_scale(judgement.observed, fleet.is_count)
            self.machines.judge(machine, self.machines.strangeness(rows, x, window).beside, judgement.score)


def core(series: int, windows: int) -> dict[str, float]:
    """Updates a second of CPU time of the models alone, all scales together: a tenth of the series warm, ten times."""
    fleet, some = Fleet(series), Fleet(series // COPIES)
    threshold, young = DetectorSettings().threshold(series), Models.of(some)
    young.step(some, FIRST, WARM, threshold)
    models = young.copies(COPIES)
    fleet.level = np.tile(some.level, COPIES)
    began = time.process_time()
    models.step(fleet, FIRST + WARM, windows, threshold)
    spent = time.process_time() - began
    return {"updates": series * windows, "updates_per_second": series * windows / spent}


def shard(series: int, windows: int) -> dict[str, float]:
    """All series in one shard, a window a batch: bytes of state, peak memory of the process, updates a CPU second."""
    fleet, state, spent = Fleet(series), None, 0.0
    for window in range(FIRST, FIRST + windows):
        records = fleet.records(window, range(fleet.machines))
        began = time.process_time()
        state, _ = fold(state, records, DetectorSettings())
        spent += time.process_time() - began if window > FIRST else 0.0
    size = sum(map(len, (state or {}).values()))
    return {
        "state_bytes_per_series": size / series,
        "of_it_numbers_of_series": BYTES_PER_SERIES,
        "peak_memory_mb": _peak_memory() / 1e6,
        "updates_per_second": series * (windows - 1) / spent,
    }


def _peak_memory() -> int:
    """Of this process, in bytes (Linux). getrusage would count that of the process which started this one."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def spark(series: int, batches: int, windows: int, shards: int, memory: str) -> dict[str, float]:
    """Kafka's rows, from files, through the job's fold and its state store; the first batches don't count."""
    with tempfile.TemporaryDirectory() as home:
        log, rest = Path(home) / "log", Path(home) / "rest"
        log.mkdir()
        rest.mkdir()
        fleet = Fleet(series)
        for batch in range(batches):
            _write_log((log if batch < UNCOUNTED else rest) / f"{batch:06}.parquet", fleet, batch, windows, shards)
        session = open_session(
            "bench-detector", Settings(home=Path(home), shuffle_partitions=shards, driver_memory=memory)
        )
        query = _start(session, log, Path(home) / "checkpoint", shards)
        query.processAllAvailable()
        before = _cpu_seconds()
        for file in sorted(rest.iterdir()):
            file.rename(log / file.name)
        query.processAllAvailable()
        spent, progress = _cpu_seconds() - before, query.recentProgress
        query.stop()
        session.stop()
    times = [one["durationMs"]["triggerExecution"] / 1e3 for one in progress if one["numInputRows"]][UNCOUNTED:]
    updates = series * windows * len(times)
    return {
        "updates_per_second": updates / sum(times),
        "updates_per_cpu_second": updates / spent,
        "seconds_per_batch": float(np.median(times)),
        "updates_per_batch": series * windows,
    }


def _write_log(file: Path, fleet: Fleet, batch: int, windows: int, shards: int) -> None:
    """A batch's windows. Files are read in the order of their times."""
    first = FIRST + batch * windows
    rows = [_rows(fleet, number, shards) for number in range(first, first + windows)]
    pq.write_table(pa.concat_tables(rows), file)


def _rows(fleet: Fleet, window: int, shards: int) -> pa.Table:
    share = fleet.machines // shards
    parts = [fleet.records(window, range(n * share, (n + 1) * share)) for n in range(shards)]
    offsets = (window - FIRST) * (share + 1) + np.arange(share + 1)
    return pa.table(
        {
            "topic": pa.array(["statistics"] * shards * (share + 1)),
            "partition": pa.array(np.repeat(np.arange(shards), share + 1), pa.int32()),
            "offset": pa.array(np.tile(offsets, shards), pa.int64()),
            "value": pa.array([raw for part in parts for raw in part], pa.binary()),
            "timestamp": pa.array([LATEST_MILLI] * shards * (share + 1), pa.timestamp("ms", "UTC")),
        }
    )


def _start(session: SparkSession, log: Path, checkpoint: Path, shards: int) -> StreamingQuery:
    stream = session.readStream.name("log").schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(log))
    folded = fold_partitions(stream, partial(DetectorShard, DetectorSettings(shards=shards)))
    return folded.writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()


def _cpu_seconds() -> float:
    """Of this process's children: the JVM, and the Python workers below it, also those that have ended."""
    return sum(sum(child.cpu_times()[:4]) for child in psutil.Process().children(recursive=True))


@app.command()
def main(
    series: Annotated[int, typer.Option(help="In one shard; through Spark in all together.")] = 100_000,
    windows: Annotated[int, typer.Option(help="Measured ones of the model.")] = 2 * SCALES[1],
    batches: Annotated[int, typer.Option(help="Through Spark.")] = 8,
    windows_per_batch: Annotated[int, typer.Option(help="10 of 2,000 machines are a job's 20,000 records.")] = 10,
    shards: Annotated[int, typer.Option(help="Through Spark.")] = 8,
    memory: Annotated[
        str, typer.Option(help="KAPPA_DRIVER_MEMORY; a shard's state is copied there several times.")
    ] = "2g",
    report: Annotated[Path, typer.Option(help="Where the JSON goes.")] = Path("build/detector.json"),
) -> None:
    """Measure the model, one shard in a process of its own, and the job's fold in Spark."""
    console = Console(width=120)
    found: dict[str, Any] = {"series": series}
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as alone:
        found["shard"] = alone.submit(shard, series, 12).result()
    console.print("shard", found["shard"])
    found["core"] = core(series, windows)
    console.print("core", found["core"])
    found["spark"] = spark(series, batches, windows_per_batch, shards, memory)
    table = Table("", "", "", box=None)
    for part in ("core", "shard", "spark"):
        for name, figure in found[part].items():
            table.add_row(part, name, f"{figure:,.0f}" if figure >= 100 else f"{figure:.2f}")
    console.print(table)
    report.parent.mkdir(exist_ok=True)
    report.write_bytes(orjson.dumps(found, option=orjson.OPT_INDENT_2))


if __name__ == "__main__":
    app()
