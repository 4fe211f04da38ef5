"""A rehearsed micro-batch goes through the fold and leaves nothing; one that fails does not end the job."""

from pathlib import Path

import pytest

from jobs.runtime.fold import fold_partitions, to_records
from jobs.runtime.rehearsal import rehearse, rows
from jobs.runtime.shard_state import Output


class Noting:
    """Notes in a file what it is given, and whether it has a state from before."""

    def __init__(self, file, parts):
        self.file, self.had_state = file, bool(parts)

    def feed(self, batch):
        with self.file.open("a") as notes:
            notes.writelines(f"{batch.topic}/{batch.shard}: {value!r} {self.had_state}\n" for value in batch.values)
        return [Output(str(batch.shard), b"seen", 0)]

    def dump(self):
        return {"some": b"state"}


class Opener:
    def __init__(self, file: Path):
        self.file = file

    def __call__(self, parts):
        return Noting(self.file, parts)


@pytest.fixture
def notes(tmp_path):
    return tmp_path / "notes"


@pytest.fixture
def scratch(tmp_path):
    (tmp_path / "scratch").mkdir()
    return tmp_path / "scratch"


def frame(spark, notes):
    folded = fold_partitions(rows(spark, "statistics"), Opener(notes))
    return to_records(folded, {"novelties": "novelties"}, same_partition=True)


def test_each_rehearsal_is_of_an_empty_state_and_leaves_none(spark, notes, scratch):
    for _ in range(2):
        notes.unlink(missing_ok=True)
        rehearse(frame(spark, notes), scratch)
        seen = notes.read_text().splitlines()
        assert {"statistics/0: b'' False", "statistics/1: b'' False"} <= set(seen)
        assert list(scratch.iterdir()) == []
    assert spark.streams.active == []


def test_a_rehearsal_that_fails_is_only_logged(spark, notes, scratch, capsys):
    rehearse(frame(spark, notes / "no folder"), scratch)
    assert "no rehearsal" in capsys.readouterr().out + capsys.readouterr().err
    assert list(scratch.iterdir()) == [] and spark.streams.active == []
