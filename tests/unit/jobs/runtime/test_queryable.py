import threading
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from jobs.runtime import queryable
from jobs.runtime.packed_state import pack
from jobs.runtime.queryable import InvalidQuestionError, NotHereError, NotKnownError, Question, Questions
from jobs.runtime.state_cache import Cached, Place, StateCache
from tests.unit.jobs.saved_shards import QUERY, put, saved_shards

WIDE, NARROW = np.array([1.5, 2.5, 3.5]), np.array([100, 101, 99], np.int64)


def state(number=1):
    return pack({"machines": ["vm-1"], "number": number}, {"wide": WIDE, "narrow": NARROW, "none": np.zeros(0)})


def ask(root, question, monkeypatch, path="/state", **arguments):
    monkeypatch.setattr(queryable, "local_folder", lambda _: root)
    asked = Questions()
    asked.open(None, SimpleNamespace(id=QUERY), [question])
    return asked.answer(path, arguments)


def test_a_shard_in_files_has_the_values_and_columns_that_were_packed(tmp_path):
    put(tmp_path, state())
    (shard,) = saved_shards(tmp_path)
    assert (shard.number, shard.value("machines"), shard.value("number")) == (0, ["vm-1"], 1)
    assert [shard.column(name).tolist() for name in ("wide", "narrow", "none")] == [[1.5, 2.5, 3.5], [100, 101, 99], []]
    assert set(shard.columns) == {"wide", "narrow", "none"}


def test_of_a_wide_column_nothing_is_copied(tmp_path):
    put(tmp_path, state())
    (shard,) = saved_shards(tmp_path)
    assert not shard.column("wide").flags.owndata
    assert not shard.column("wide").flags.writeable


def test_the_newest_version_is_read(tmp_path):
    put(tmp_path, state(1))
    put(tmp_path, state(2), version="second")
    (shard,) = saved_shards(tmp_path)
    assert shard.value("number") == 2


def test_shards_of_other_queries_are_left_out(tmp_path, monkeypatch):
    put(tmp_path, state(), shard=3)
    StateCache(tmp_path).put(Place("other", "topic", 0), "first", Cached(state()))
    question = Question("/state", lambda shards, _: [shard.number for shard in shards])
    assert ask(tmp_path, question, monkeypatch) == [3]


def test_without_a_shard_the_state_is_not_here(tmp_path, monkeypatch):
    with pytest.raises(NotHereError, match="no shard has been folded on this machine"):
        ask(tmp_path, Question("/state", lambda shards, _: 1 / 0), monkeypatch)


def test_a_version_that_is_replaced_while_it_is_read_is_read_again(tmp_path, monkeypatch):
    put(tmp_path, state(1))
    tries = []

    def answer(shards, _):
        tries.append(1)
        if len(tries) == 1:
            put(tmp_path, state(2), version="second")
        return shards[0].value("number"), shards[0].column("narrow").tolist()

    assert ask(tmp_path, Question("/state", answer), monkeypatch) == (2, [100, 101, 99])
    assert len(tries) == 2


def test_answers_are_whole_while_a_worker_goes_on(tmp_path, monkeypatch):
    cache, stop = StateCache(tmp_path), threading.Event()

    def fold_once(number):
        columns = {"narrow": np.full(1000, number), "wide": np.full(1000, float(number))}
        cache.put(Place(QUERY, "topic", 0), str(number), Cached(pack({"number": number}, columns)))

    def fold():
        for number in count(2):
            fold_once(number)
            if stop.is_set():
                return

    def answer(shards, _):
        shard = shards[0]
        return {shard.value("number"), *shard.column("narrow").tolist(), *shard.column("wide").tolist()}

    fold_once(1)
    worker = threading.Thread(target=fold)
    worker.start()
    try:
        for _ in range(100):
            try:
                assert len(ask(tmp_path, Question("/state", answer), monkeypatch)) == 1
            except NotHereError:
                continue  # it was replaced five times in a row, and says so
    finally:
        stop.set()
        worker.join()


@pytest.mark.parametrize("error", [NotKnownError, InvalidQuestionError])
def test_what_an_answer_refuses_is_passed_on(tmp_path, monkeypatch, error):
    put(tmp_path, state())

    def answer(shards, arguments):
        raise error(arguments["machine"])

    with pytest.raises(error, match="vm-7"):
        ask(tmp_path, Question("/state", answer), monkeypatch, machine="vm-7")
