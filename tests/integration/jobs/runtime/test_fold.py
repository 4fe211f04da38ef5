"""A fold's state as Spark keeps it: by part, across workers, and in a copy of its checkpoint."""

import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import orjson
import pytest
from pyspark.sql import functions as F

from jobs.runtime.checkpoint import INITIAL, Checkpoint
from jobs.runtime.fold import INITIAL_SCHEMA, fold_partitions
from jobs.runtime.packed_state import pack, unpack
from jobs.runtime.queryable import Question, Questions
from jobs.runtime.shard_state import Output
from jobs.runtime.state_cache import StateCache, of_this_worker
from ops.savepoints.store import Store, copy_checkpoint
from ops.state.state import OPERATOR, moved, partitions, shards

ROWS = (
    "topic string, partition int, offset long, value string, timestamp timestamp,"
    " headers array<struct<key:string,value:binary>>"
)
TIME = datetime(2026, 1, 1, tzinfo=UTC)  # Kafka's
SHARDS = (0, 3)
NOTHING: dict = {}  # written before


class RunningSum:
    """Keeps all numbers, a column for each ten of them, and gives their sum after each record."""

    def __init__(self, parts):
        self.header, self.columns = unpack(parts) if parts else ({"sum": 0}, {})

    def feed(self, batch):
        outputs = []
        for offset, value in zip(batch.offsets, batch.values, strict=True):
            name, number = f"from {offset // 10}", orjson.loads(value)
            self.columns[name] = np.append(self.columns.get(name, np.empty(0, np.int64)), number)
            self.columns.pop(f"from {offset // 10 - 3}", None)
            self.header["sum"] += number
            outputs.append(Output(str(batch.shard), b"%d" % self.header["sum"], offset))
        return outputs

    def dump(self):
        return pack(self.header, self.columns)


def always_elsewhere():
    """The cache of a machine that never has the state of the batch before."""
    return StateCache(Path(tempfile.mkdtemp()))


@pytest.fixture
def run(spark, tmp_path):
    """Feed records, one file a batch, through a fold; gives what it wrote, by shard."""

    def feed(begin, end):
        rows = [("events", shard, n, str(n * (shard + 1)), TIME, []) for n in range(begin, end) for shard in SHARDS]
        spark.createDataFrame(rows, ROWS).coalesce(1).write.json(str(tmp_path / f"in/{begin:03d}"))

    def through(checkpoint, caches=of_this_worker, ended=lambda query: None, written=NOTHING, initial=None):
        stream = spark.readStream.format("json").name("events").schema(ROWS).option("maxFilesPerTrigger", 1)
        kafka = stream.load(str(tmp_path / "in/*")).withColumn("value", F.col("value").cast("binary"))
        rows = []
        query = (
            fold_partitions(kafka, RunningSum, caches, written, initial)
            .writeStream.foreachBatch(lambda frame, _: rows.extend(frame.orderBy("time_unix_nano").collect()))
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(280)  # on a busy machine
        ended(query)
        return {shard: [int(bytes(row.value)) for row in rows if row.shard == shard] for shard in SHARDS}

    return feed, through


def sums(shard, begin, end):
    return np.cumsum(np.arange(end) * (shard + 1))[begin:].tolist()


def test_its_shards_can_be_asked_beside_the_query(run, spark, tmp_path):
    feed, through = run
    feed(0, 5)
    feed(5, 12)
    questions = Questions()
    asked = Question("/sum", lambda found, _: {one.number: one.value("sum") for one in found})
    through(tmp_path / "checkpoint", ended=lambda query: questions.open(spark, query, [asked]))
    assert questions.answer("/sum", {}) == {shard: sums(shard, 0, 12)[-1] for shard in SHARDS}


@pytest.mark.parametrize("caches", [of_this_worker, always_elsewhere])
def test_state_goes_on_from_batch_to_batch(run, tmp_path, caches):
    feed, through = run
    for begin, end in ((0, 25), (25, 26), (26, 60)):
        feed(begin, end)
    assert through(tmp_path / "checkpoint", caches) == {shard: sums(shard, 0, 60) for shard in SHARDS}


def test_a_copy_of_the_checkpoint_goes_on_elsewhere(run, spark, tmp_path):
    feed, through = run
    feed(0, 45)
    through(tmp_path / "checkpoint")
    copy = tmp_path / "copy"
    copied(tmp_path / "checkpoint", copy)
    for checkpoint in (tmp_path / "checkpoint", copy):
        assert partitions(Store.of(str(checkpoint))) == int(spark.conf.get("spark.sql.shuffle.partitions"))
    found = {shard: unpack(state) for shard, state in shards(spark, str(copy)).items()}
    assert {shard: header for shard, (header, _) in found.items()} == {
        shard: {"sum": sums(shard, 0, 45)[-1]} for shard in SHARDS
    }
    assert {tuple(columns) for _, columns in found.values()} == {("from 2", "from 3", "from 4")}

    shutil.rmtree(tmp_path / "checkpoint")
    feed(45, 50)
    assert through(copy) == {shard: sums(shard, 45, 50) for shard in SHARDS}


def copied(checkpoint, copy):
    """A copy of a checkpoint that Spark can start from."""
    copy_checkpoint(Store.of(str(checkpoint)), Store.of(str(copy)))
    operator = Store.of(str(copy)) / OPERATOR
    for name in operator.names():
        operator.write(name, moved(operator.read(name), str(copy)))


def test_a_query_that_is_put_back_reads_again_and_tells_only_what_it_had_not_told(run, tmp_path):
    feed, through = run
    feed(0, 45)
    through(tmp_path / "checkpoint")
    copied(tmp_path / "checkpoint", tmp_path / "copy")
    feed(45, 60)
    told = {("events", SHARDS[0]): 60, ("events", SHARDS[1]): 52}  # as if the other had not read so far
    assert through(tmp_path / "checkpoint") == {shard: sums(shard, 45, 60) for shard in SHARDS}
    feed(60, 65)
    assert through(tmp_path / "copy", written=told) == {
        SHARDS[0]: sums(SHARDS[0], 60, 65),
        SHARDS[1]: sums(SHARDS[1], 52, 65),
    }


def test_a_new_query_begins_with_states_from_elsewhere_and_needs_them_once(run, spark, tmp_path):
    feed, through = run
    checkpoint = Checkpoint(spark, str(tmp_path / "checkpoint"))
    assert checkpoint.initial() is None
    states = {SHARDS[0]: pack({"sum": 1_000}, {"from -1": np.arange(3)}), 9: pack({"sum": 7}, {})}
    rows = [(shard, name, part) for shard, parts in states.items() for name, part in parts.items()]
    spark.createDataFrame(rows, INITIAL_SCHEMA).write.parquet(f"{checkpoint.path}/{INITIAL}")
    for begin, end in ((0, 5), (5, 8)):
        feed(begin, end)
    begun = through(checkpoint.path, initial=checkpoint.initial())
    assert begun == {
        SHARDS[0]: [1_000 + one for one in sums(SHARDS[0], 0, 8)],
        SHARDS[1]: sums(SHARDS[1], 0, 8),
    }
    found = {shard: unpack(state)[0]["sum"] for shard, state in shards(spark, checkpoint.path).items()}
    assert found == {SHARDS[0]: begun[SHARDS[0]][-1], SHARDS[1]: begun[SHARDS[1]][-1], 9: 7}

    assert checkpoint.initial() is None  # a batch is done
    assert not (tmp_path / "checkpoint" / INITIAL).exists()
    feed(8, 10)
    assert through(checkpoint.path, always_elsewhere)[SHARDS[0]] == [1_000 + one for one in sums(SHARDS[0], 8, 10)]
