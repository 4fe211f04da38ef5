"""What a task of the restore writes, on a real broker: each record once, as it was, however often it is run."""

import uuid

import pyarrow as pa
import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from connectors.kafka.offsets import Log
from connectors.kafka.reader import read_topic
from jobs.runtime.replay import OFFSET_HEADER
from ops.replay import restore
from ops.replay.restore import COLUMNS, _PartitionWriter, _Task

SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)
HEADERS = [{"key": "kappa.schema", "value": b"events/1"}]


@pytest.fixture
def task(servers):
    """Restores topic `in` into a topic of this test's own, of two partitions."""
    target = f"restored-{uuid.uuid4().hex[:8]}"
    admin = connect(servers.bootstrap)
    config = {"message.timestamp.type": "CreateTime", "retention.ms": "-1"}
    admin.create_topics([NewTopic(target, 2, 1, config=config)])[target].result()
    return _Task(servers.bootstrap, f"kappa.{target}.restore", {"in": target})


def batch(*rows):
    """Records (partition, offset) of topic `in`; the times of the log need not ascend."""
    columns = {name: [] for name in COLUMNS}
    for partition, offset in rows:
        record = ("in", partition, offset, 1_000 - offset, b"m", f"{partition}/{offset}".encode(), HEADERS)
        for name, value in zip(COLUMNS, record, strict=True):
            columns[name].append(value)
    return pa.RecordBatch.from_pydict(columns, schema=SCHEMA)


def written(task, *batches):
    (result,) = task(iter(batches))
    return result.column("written").to_pylist()[0]


def found(task):
    """(partition, value, timestamp, headers) of what a reader of committed records sees."""
    messages = read_topic(task.bootstrap, task.targets["in"])
    return sorted((m.partition(), m.value().decode(), m.timestamp()[1], m.headers()) for m in messages)


def expected(*rows):
    return sorted(
        (
            partition,
            f"{partition}/{offset}",
            1_000 - offset,
            [("kappa.schema", b"events/1"), (OFFSET_HEADER, str(offset).encode())],
        )
        for partition, offset in rows
    )


def test_a_task_that_is_run_again_goes_on_where_it_was(task, monkeypatch):
    monkeypatch.setattr(restore, "COMMIT_RECORDS", 2)
    rows = [(0, 4), (0, 5), (0, 9), (1, 7), (1, 8)]
    assert written(task, batch(*rows[:2]), batch(rows[2])) == 3
    assert written(task, batch(*rows)) == 2
    assert written(task, batch(*rows)) == 0
    assert found(task) == expected(*rows)
    committed = Log(task.bootstrap).committed(task.query, [(task.targets["in"], 0), (task.targets["in"], 1)])
    assert list(committed.values()) == [10, 9]


def test_a_task_that_was_killed_leaves_nothing_and_is_fenced(task):
    target = task.targets["in"]
    killed = _PartitionWriter(task.bootstrap, task.query, ("in", 0), target)
    assert killed.add(("in", 0, 4, 996, b"m", b"of the dead", None))
    assert written(task, batch((0, 4))) == 1
    with pytest.raises(KafkaException) as refused:
        killed.end()
    assert refused.value.args[0].code() == KafkaError._FENCED
    assert found(task) == expected((0, 4))
