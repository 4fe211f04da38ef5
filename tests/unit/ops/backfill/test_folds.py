import pyarrow as pa
import pytest

from jobs.runtime.packed_state import pack, unpack
from jobs.runtime.shard_state import Output
from ops.backfill.folds import Row, ShardFolds, Stage, read_state, write_state
from ops.savepoints.store import Store


class Sum:
    """Gives the sum after each number; of odd sums a dead letter, by key."""

    def __init__(self, parts):
        self.sum = unpack(parts)[0]["sum"] if parts else 0

    def feed(self, batch):
        outputs = []
        for offset, value in zip(batch.offsets, batch.values, strict=True):
            self.sum += int(value)
            outputs.append(Output("key", b"%d" % self.sum, offset * 1_000_000_000))
            if self.sum % 2:
                outputs.append(Output("odd", b"%d" % self.sum, 0, (("h", b"x"),), topic="rejected", by_key=True))
        return outputs

    def dump(self):
        return pack({"sum": self.sum}, {})


def stage(job, reads, writes):
    return Stage(job, reads, {"out": writes, "rejected": "rejected.v2"}, Sum, whole_topic=False)


@pytest.fixture
def folds(tmp_path):
    stages = [stage("one", "in", "middle"), stage("two", "middle", "end")]
    return lambda step: ShardFolds(stages, str(tmp_path), step)


def rows(*numbers):
    return [Row("in", 3, None, b"%d" % number, 5, []) for number in numbers]


def found(folded):
    return [(row.topic, row.partition, int(row.value)) for row in folded]


def test_what_one_fold_writes_into_its_shard_the_next_one_reads(folds):
    assert found(folds(0).fold(3, rows(2, 1))) == [
        ("middle", 3, 2),
        ("middle", 3, 3),
        ("rejected.v2", None, 3),
        ("end", 3, 2),
        ("end", 3, 5),
        ("rejected.v2", None, 5),
    ]


def test_a_step_goes_on_from_the_states_after_the_one_before(folds):
    list(folds(0).fold(3, rows(2, 2)))
    assert found(folds(1).fold(3, [])) == []
    later = list(folds(2).fold(3, rows(2)))
    assert found(later) == [("middle", 3, 6), ("end", 3, 12)]
    assert later[0].timestamp_ms == 2_000  # the offset goes on: two records were read before
    assert list(folds(2).fold(3, rows(2))) == later  # repeated, it gives the same


def test_spark_gives_and_gets_tables(folds):
    columns = {"partition": [3, 3, 3], "offset": [8, 7, -1], "value": [b"2", b"4", None], "timestamp_ms": [5, 5, 0]}
    table = pa.table(columns)
    given = folds(0).of_table((pa.scalar(3), pa.scalar(0)), table).to_pylist()
    assert [(one["topic"], one["value"], one["shard"], one["place"]) for one in given] == [
        ("middle", b"4", 3, 0),
        ("middle", b"6", 3, 1),
        ("end", b"4", 3, 2),
        ("end", b"10", 3, 3),
    ]


def test_a_state_is_kept_as_it_is(tmp_path):
    store = Store.of(str(tmp_path))
    write_state(store, "one-3", 7, {"head": b"a\n", "empty": b"", "x": b"\0\1"})
    assert read_state(store, "one-3") == (7, {"head": b"a\n", "empty": b"", "x": b"\0\1"})
    assert read_state(store, "one-4") == (0, {})
