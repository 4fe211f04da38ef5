"""Of several processes that write one file of a checkpoint, or one version of a table, one succeeds."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from delta import DeltaTable
from py4j.protocol import Py4JJavaError

CHECKPOINT = "s3a://kappa/checkpoints/live/job"
WRITERS = 8


@pytest.fixture
def manager(spark):
    """What Spark keeps a checkpoint's files with."""
    path = spark._jvm.org.apache.hadoop.fs.Path(CHECKPOINT)
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    managers = spark._jvm.org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager
    return managers.create(path, conf)


@pytest.fixture
def path(spark):
    return lambda name: spark._jvm.org.apache.hadoop.fs.Path(f"{CHECKPOINT}/{name}")


def write(stream, content):
    stream.write(bytearray(content))
    stream.close()


def read(manager, path):
    stream = manager.open(path)
    content = bytes(stream.readAllBytes())
    stream.close()
    return content


def winner(attempt):
    """The number of the one writer, of many at once, that isn't told that the file exists."""

    def succeeds(number):
        try:
            attempt(number)
        except Py4JJavaError as error:
            assert "FileAlreadyExistsException" in str(error.java_exception)
            return False
        return True

    with ThreadPoolExecutor(WRITERS) as pool:
        (found,) = [number for number, won in enumerate(pool.map(succeeds, range(WRITERS))) if won]
    return found


def test_a_session_uses_our_writers(manager, spark):
    assert manager.getClass().getName() == "kappa.S3Checkpoint"
    assert spark.conf.get("spark.delta.logStore.s3a.impl") == "kappa.S3Log"


def test_who_is_first_to_close_wins(manager, path):
    one, other = (manager.createAtomic(path("offsets/0"), False) for _ in range(2))
    write(one, b"first")
    with pytest.raises(Py4JJavaError, match="FileAlreadyExistsException"):
        write(other, b"second")
    assert read(manager, path("offsets/0")) == b"first"


def test_of_many_at_once_one_wins(manager, path):
    streams = [manager.createAtomic(path("offsets/1"), False) for _ in range(WRITERS)]
    number = winner(lambda number: write(streams[number], b"%d" % number))
    assert read(manager, path("offsets/1")) == b"%d" % number


def test_what_is_cancelled_is_never_there(manager, path):
    stream = manager.createAtomic(path("offsets/2"), False)
    stream.write(bytearray(b"half"))
    stream.cancel()
    stream.close()
    assert not manager.exists(path("offsets/2"))


def test_what_may_be_replaced_is(manager, path):
    for content in (b"old", b"new"):
        write(manager.createAtomic(path("state/1.zip"), True), content)
    assert read(manager, path("state/1.zip")) == b"new"


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_takes_one_request(manager, path, store, overwrite):
    """A batch writes several, one after the other."""
    manager.exists(path("anything"))  # so that the client has connected
    before = store.requests()
    write(manager.createAtomic(path(f"commits/{overwrite}"), overwrite), b"x")
    assert store.requests() == before + 1


def test_a_file_of_the_disk_is_brought_whole(spark, manager, path, tmp_path):
    """As Spark does it with files of the state: by another client than the streams have."""
    content = bytes(range(256)) * 20_000
    (tmp_path / "000008.sst").write_bytes(content)
    target = path("state/000008.sst")
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    local = spark._jvm.org.apache.hadoop.fs.Path(str(tmp_path / "000008.sst"))
    target.getFileSystem(conf).copyFromLocalFile(local, target)
    assert read(manager, target) == content


def test_two_writers_of_a_table_lose_nothing(spark):
    """As the archive and its maintenance, which know nothing of each other; here each has a log of its own."""
    table = "s3a://kappa/delta/live/two"
    spark.range(1).write.format("delta").save(table)

    def append(number):
        spark.range(number, number + 1).coalesce(1).write.format("delta").mode("append").save(table)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(append, range(1, WRITERS + 1)))
    assert sorted(row.id for row in spark.read.format("delta").load(table).collect()) == list(range(WRITERS + 1))
    assert DeltaTable.forPath(spark, table).history().count() == WRITERS + 1


def test_a_version_whose_answer_was_lost_is_not_written_twice(spark, store):
    """The client repeats the request, and is told that there is one."""
    table = "s3a://kappa/delta/live/lost"
    store.trouble(lost=0.5)
    try:
        for number in range(WRITERS):
            spark.range(number, number + 1).coalesce(1).write.format("delta").mode("append").save(table)
    finally:
        store.trouble()
    assert sorted(row.id for row in spark.read.format("delta").load(table).collect()) == list(range(WRITERS))


def test_of_many_that_write_one_version_one_wins(spark):
    """Ours hold no lock of their process, as Delta's own class does: they are as if in processes of their own."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    version = spark._jvm.org.apache.hadoop.fs.Path("s3a://kappa/delta/live/table/_delta_log/0.json")

    def attempt(number):
        lines = spark._jvm.java.util.ArrayList()
        lines.add(str(number))
        spark._jvm.kappa.S3Log(conf).write(version, lines.iterator(), False, conf)

    number = winner(attempt)
    (row,) = spark.read.text(version.toString()).collect()
    assert row.value == str(number)
