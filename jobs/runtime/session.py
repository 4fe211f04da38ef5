"""Opens the Spark session of an application, with the configuration that the jobs' correctness and speed rest on."""

import os
import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession
from pyspark.sql.types import ArrayType, DataType, DoubleType, MapType, StructType

from connectors.java_class import java_class
from infra.contract.schemas import SCHEMAS
from infra.files import write_private
from infra.jars import spark_jars
from infra.jdk import SPARK_JAVA, find_jdk
from infra.settings import SECRET
from jobs.runtime import object_store
from jobs.runtime.scratch import scratch_of_this_process
from jobs.runtime.settings import Settings

STATE_STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

# Java's default, G1, collects concurrently: a fifth of enrichment's CPU time. A micro-batch doesn't need short pauses.
_GC = "-XX:+UseParallelGC"
# Ten times Java's defaults. Of the 30,000 methods that a job runs, planning its batches above all, few are worth the
# optimizing compiler, which took up to a quarter of two cores in the first ten minutes.
_COMPILER = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000"
    " -XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000"
)
# Without memory, threads of Spark may end and leave the job standing: it ends, and is started again.
_JAVA = f"{_GC} {_COMPILER} -XX:+ExitOnOutOfMemoryError"

# On a local disk, the default starts `readlink` for each file that it renames: ten processes a second in the chain. And
# two copies of a job could plan one batch, each in its own way.
_LOCAL_CHECKPOINTS = {"spark.sql.streaming.checkpointFileManagerClass": "kappa.LocalCheckpoint"}

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"  # of the command that starts the JVM
_HOME = "SPARK_HOME"

# What settings may change.
_DEFAULTS = {
    # Of a table's log, as of the files that only former versions have. Delta's default is 30 days, which with a commit
    # each 30 s are a gigabyte for each table.
    "spark.databricks.delta.properties.defaults.logRetentionDuration": "interval 7 days",
}

_FIXED = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    # A retried micro-batch must have the same tasks: no partitions chosen by size.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.stateStore.providerClass": STATE_STORE,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",  # a duplicate attribute is bad input, not a reason to stop
    "spark.sql.execution.arrow.maxRecordsPerBatch": "5000",
    # By default 64 MB: a shard's records went to Python in pieces for which the JVM's buffers were new memory each
    # time. To have its pages cleared was two fifths of what the statistics' tasks did.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(8 * 2**20),
    # Python workers keep the memory that numpy frees. By default each large array's pages are the kernel's to clear.
    "spark.executorEnv.MALLOC_MMAP_THRESHOLD_": str(2**30),
    "spark.executorEnv.MALLOC_TRIM_THRESHOLD_": str(2**30),
    "spark.python.worker.reuse": "true",
    "spark.python.unix.domain.socket.enabled": "true",  # records and state go through no TCP
    # Written and read once: LZ4 and its checksums were 6 % of enrichment's CPU time, and more of the statistics'.
    "spark.shuffle.compress": "false",
    # The default, 100 compiled stages, is less than the queries of the archive or of the small profile have: each batch
    # would compile them again.
    "spark.sql.codegen.cache.maxEntries": "1000",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",
    # Of a table with few files, each commit would note all of them once more: 9 % of its CPU time, and three fifths of
    # the log's bytes.
    "spark.databricks.delta.allFilesInCrc.enabled": "false",
    # Delta's vacuum lists a table in so many tasks. By default 10,000: a minute for ten files.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
    # Larger files are joined by `kappa archive maintain` alone. At 100,000 events/s each batch writes such, and to join
    # them at once was half of the archive's work.
    "spark.databricks.delta.autoCompact.minFileSize": str(4 * 2**20),
    # So many partitions of a table are open at once; by default a task sorts its rows to have one open at a time.
    "spark.sql.maxConcurrentOutputFileWriters": "32",
    # A record may have megabytes. By default Parquet's reader takes 4096 rows at once and its writer 128 MB, at least a
    # hundred rows: joining the archive's small files ended a JVM of 512 MB, again after each start.
    "spark.sql.parquet.enableVectorizedReader": "false",
    "spark.hadoop.parquet.block.size": str(16 * 2**20),
    "spark.hadoop.parquet.block.size.row.check.min": "10",
    "spark.hadoop.parquet.page.size.row.check.min": "10",
    # Of the log, no two values are equal, nor the headers that say where they came from: no dictionary is tried.
    "spark.hadoop.parquet.enable.dictionary#value": "false",
    "spark.hadoop.parquet.enable.dictionary#headers.list.element.value": "false",
    "spark.sql.parquet.compression.codec": "zstd",  # a third of Snappy's bytes (make bench-archive)
    # A batch's shuffle files go when its plan is collected as garbage, which a heap with room may put off for long.
    "spark.cleaner.periodicGC.interval": "10min",
    "spark.sql.streaming.minBatchesToRetain": "20",
    # It reads what all kept versions of a state are made of: each 60 s, that was 8 % of the statistics' JVM.
    "spark.sql.streaming.stateStore.maintenanceInterval": "300s",
    "spark.sql.streaming.numRecentProgressUpdates": "20",  # the runner looks twice a second
    # Sources are known by name: a format that is added to the map must not shift the others' offsets.
    "spark.sql.streaming.queryEvolution.enableSourceEvolution": "true",
    "spark.sql.streaming.offsetLog.formatVersion": "2",
    # Spark 4.2 looks there for the number of shuffle partitions, which version 2 doesn't note: a job that was killed
    # within a batch could never start again (None.get).
    "spark.sql.streaming.checkUnfinishedRepartitionOnRestart": "false",
}


def open_session(name: str, settings: Settings, **extra: str) -> SparkSession:
    """A session on the settings' master with the project's jars; `extra` is more Spark configuration.

    Raises UserError if there is no suitable JDK or the jars can't be had.
    """
    os.environ["JAVA_HOME"] = str(find_jdk(SPARK_JAVA, "Spark"))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # Spark already runs a Python worker for each core
    scratch = scratch_of_this_process(settings.home)
    jars = [*spark_jars(), *object_store.jars(settings)]
    builder = (
        SparkSession.builder.appName(name)
        .master(settings.spark_master)
        .config("spark.jars", ",".join(map(str, jars)))
        .config("spark.driver.memory", settings.driver_memory)
        .config("spark.local.dir", str(scratch))
        .config("spark.sql.warehouse.dir", str(scratch.parent / "warehouse"))
        .config("spark.driver.extraJavaOptions", f"{_JAVA} -Dlog4j2.configurationFile={log4j_file()}")
        .config("spark.executor.extraJavaOptions", _JAVA)
        .config("spark.sql.shuffle.partitions", settings.shuffle_partitions)
    )
    local = {} if "://" in settings.checkpoint_of(name) else _LOCAL_CHECKPOINTS
    conf = {**_DEFAULTS, **local, **object_store.conf(settings, os.environ), **settings.spark_conf, **_FIXED, **extra}
    secrets = {key: value for key, value in conf.items() if SECRET.search(key)}
    for key, value in conf.items():
        if key not in secrets:
            builder = builder.config(key, value)
    with _off_the_command_line(secrets, scratch), _home_without_archive(scratch):
        spark = builder.getOrCreate()
    _use_own_local_files(spark)
    _write_doubles_plainly(spark)
    return spark


@contextmanager
def session(name: str, settings: Settings) -> Iterator[SparkSession]:
    """The same for a command, which ends it."""
    spark = open_session(name, settings)
    try:
        yield spark
    finally:
        spark.stop()


@contextmanager
def _off_the_command_line(secrets: Mapping[str, str], folder: Path) -> Iterator[None]:
    """Spark's configuration is in the command line of its JVM, which everybody sees: these go in a file instead."""
    if not secrets:
        yield
        return
    file = folder / f"secrets-{os.getpid()}.properties"
    write_private(file, "".join(f"{key}={_escaped(value)}\n" for key, value in secrets.items()).encode())
    former = os.environ.get(_ARGUMENTS, "pyspark-shell")
    os.environ[_ARGUMENTS] = f"--properties-file {shlex.quote(str(file))} {former}"
    try:
        yield
    finally:
        os.environ[_ARGUMENTS] = former
        file.unlink()


@contextmanager
def _home_without_archive(folder: Path) -> Iterator[None]:
    """The JVM's Spark home, unless the user has one, is without `python/lib/pyspark.zip`.

    Spark has its Python processes import PySpark from there if it exists. Each then compiles what it imports: 1.9 s of
    CPU time instead of 0.4 s, and Spark waits ten seconds for it, on a machine that starts several jobs.
    """
    if _HOME in os.environ:
        yield
        return
    home, installed = folder / "home", Path(pyspark.__file__).parent
    home.mkdir(exist_ok=True)
    for part in ("bin", "conf", "jars"):
        link = home / part
        if not link.is_symlink():
            link.symlink_to(installed / part)
    os.environ[_HOME] = str(home)
    try:
        yield
    finally:
        del os.environ[_HOME]


def _use_own_local_files(spark: SparkSession) -> None:
    """Have files on local disks written without a process, `chmod`, for each of them and another for its checksums.

    Not by Spark's configuration: its launcher would look for the class before it has our jar.
    """
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    configuration.set("fs.file.impl", "kappa.LocalFiles")
    # Hadoop's is open already, and would be given for ever. No other is closed: an object store may have Spark's log.
    java_class(spark, "org.apache.hadoop.fs.FileSystem").getLocal(configuration).close()


def _write_doubles_plainly(spark: SparkSession) -> None:
    """Have Parquet try no dictionary for numbers of which few are equal.

    The dictionaries took 40 % of the CPU time of writing `statistics`, and made the table a tenth larger.
    """
    configuration = spark.sparkContext._jsc.hadoopConfiguration()
    for path in {path for schema in SCHEMAS.values() for path in double_columns(schema)}:
        configuration.setBoolean(f"parquet.enable.dictionary#{path}", False)


def double_columns(kind: DataType, path: tuple[str, ...] = ()) -> Iterator[str]:
    """The columns of doubles that Parquet makes of values of this type at `path`, by their dotted paths."""
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from double_columns(field.dataType, (*path, field.name))
    elif isinstance(kind, ArrayType):
        yield from double_columns(kind.elementType, (*path, "list", "element"))
    elif isinstance(kind, MapType):
        yield from double_columns(kind.valueType, (*path, "key_value", "value"))
    elif isinstance(kind, DoubleType):
        yield ".".join(path)


def _escaped(value: str) -> str:
    """A value as a file of Java's properties has it."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def log4j_file() -> str:
    """The URL of the configuration of Spark's own log: warnings and errors, on stderr."""
    return (Path(__file__).parent / "log4j2.properties").resolve().as_uri()
