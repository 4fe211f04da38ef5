"""The fold that Spark calls, with a state store of plain dictionaries in Spark's place."""

from types import SimpleNamespace
from typing import ClassVar

import orjson
import pandas as pd
import pytest

from jobs.runtime import shard_state
from jobs.runtime.fold import _Shards
from jobs.runtime.packed_state import pack, unpack
from jobs.runtime.shard_state import Input, Output
from jobs.runtime.state_cache import Place, StateCache

PLACE = Place("query", "events", 3)


class Sum:
    """Adds up numbers, and gives the sum after each of them."""

    opened: ClassVar[list[int]] = []  # the sum with which each state began

    def __init__(self, parts):
        self.sum = unpack(parts)[0]["sum"] if parts else 0
        self.opened.append(self.sum)

    def feed(self, batch):
        outputs = []
        for offset, value in zip(batch.offsets, batch.values, strict=True):
            self.sum += orjson.loads(value)
            outputs.append(Output("key", b"%d" % self.sum, offset))
        return outputs

    def dump(self):
        return pack({"sum": self.sum, "always": "the same"}, {})


class Recording:
    """Gives the records that it is fed with."""

    def __init__(self, parts):
        pass

    def feed(self, batch):
        return [Output("key", value, offset) for offset, value in zip(batch.offsets, batch.values, strict=True)]

    def dump(self):
        return pack({}, {})


class Stored:
    """What Spark keeps between two batches: a value, and a map."""

    def __init__(self):
        self.value, self.map, self.changed = None, {}, []

    def get(self):
        return self.value

    def update(self, value):
        self.value = value

    def iterator(self):
        return iter([((name,), (part,)) for name, part in self.map.items()])

    def updateValue(self, key, value):
        self.map[key[0]] = value[0]
        self.changed.append(key[0])

    def removeKey(self, key):
        del self.map[key[0]]


@pytest.fixture
def shards(tmp_path, monkeypatch):
    """A worker's fold, over a state that lasts as long as the test."""
    monkeypatch.setattr(Sum, "opened", [])
    version, parts = Stored(), Stored()

    def of_a_worker(root="machine"):
        (tmp_path / root).mkdir(exist_ok=True)
        cache = StateCache(tmp_path / root)
        found = _Shards(Sum, lambda: cache)
        found.version, found.parts = version, parts
        return found

    return of_a_worker


def fold(shards, begin, *numbers):
    batch = Input("events", 3, range(begin, begin + len(numbers)), [b"%d" % n for n in numbers], [3] * len(numbers))
    known = shards.version.get()
    return [int(output.value) for output in shards._fold(PLACE, known[0] if known else "", batch)]


def test_a_worker_that_folds_on_opens_its_state_once(shards):
    worker = shards()
    assert fold(worker, 0, 1, 2) + fold(worker, 2, 3) + fold(worker, 3, 4) == [1, 3, 6, 10]
    assert Sum.opened == [0]


@pytest.mark.parametrize("root", ["machine", "another machine"])
def test_another_worker_opens_what_was_dumped(shards, root):
    assert fold(shards(), 0, 1, 2) == [1, 3]
    assert fold(shards(root), 2, 3) == [6]
    assert Sum.opened == [0, 3]


def test_a_state_is_fed_a_large_batch_in_pieces(shards, monkeypatch):
    sizes, feed = [], Sum.feed
    monkeypatch.setattr(Sum, "feed", lambda self, batch: sizes.append(len(batch.values)) or feed(self, batch))
    monkeypatch.setattr(shard_state.Input.in_pieces, "__defaults__", (2,))
    assert fold(shards(), 0, *range(10)) == [0, 1, 3, 6, 10, 15, 21, 28, 36, 45]
    assert sizes == [2, 2, 2, 2, 2]


def test_only_parts_that_changed_are_written(shards):
    worker = shards()
    fold(worker, 0, 1)
    assert sorted(worker.parts.changed) == ["head", "value/always", "value/sum"]
    worker.parts.changed.clear()
    fold(worker, 1, 1)
    assert worker.parts.changed == ["value/sum"]


def test_a_batch_that_fails_half_way_is_folded_again_from_what_was_dumped(shards):
    worker = shards()
    fold(worker, 0, 1, 2)
    with pytest.raises(orjson.JSONDecodeError):
        list(worker._fold(PLACE, worker.version.get()[0], Input("events", 3, [2, 3], [b"9", b"?"], [3, 3])))
    assert fold(worker, 2, 3) == [6]
    assert Sum.opened == [0, 3]


def test_a_batch_that_spark_did_not_keep_is_folded_again_from_the_batch_before(shards):
    worker = shards()
    fold(worker, 0, 1, 2)
    before, parts = worker.version.value, dict(worker.parts.map)
    fold(worker, 2, 5)
    worker.version.value, worker.parts.map = before, parts
    assert fold(worker, 2, 3) == [6]


def test_what_was_written_before_goes_into_the_state_alone(shards):
    """As after it was put back to an older state: in the end it stands where it would have stood."""
    worker = shards()
    worker.written = {("events", 3): 4}
    assert fold(worker, 0, 1, 2) == []
    assert fold(worker, 2, 3, 4, 5, 6) == [15, 21]
    assert fold(worker, 6, 7) == [28]


def test_records_of_former_versions_are_fed_as_this_version_writes_them(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "jobs.runtime.fold.TaskContext", SimpleNamespace(get=lambda: SimpleNamespace(getLocalProperty=str))
    )
    worker = _Shards(Recording, lambda: StateCache(tmp_path))
    worker.version, worker.parts = Stored(), Stored()
    spell = b'{"statistic":"spell"}'
    versions = {
        b'{"tick_unix_nano":5}': None,
        spell: b"novelties/1",
        spell + b" ": b"novelties/2",
        b"{": b"novelties/1",
    }
    rows = pd.DataFrame(
        {
            "topic": "novelties",
            "partition": 3,
            "offset": range(4),
            "value": versions.keys(),
            "timestamp_ms": 1,
            "version": versions.values(),
        }
    )
    (frame,) = worker.handleInputRows((3, 0), [rows], None)
    fed = [b'{"watermark_unix_nano":5}', b'{"statistic":"sustained_deviation"}', spell + b" ", b"{"]
    assert frame["value"].tolist() == fed
