import pytest

from jobs.runtime.state_cache import Cached, Place, StateCache

FIRST = {"head": b"1", "column/a": b"aaaa", "column/b": b""}
HERE = Place("query", "events", 3)


class Opened:
    """Stands for a shard's state that is ready to be fed."""

    def feed(self, batch):
        return []

    def dump(self):
        return FIRST


@pytest.fixture
def worker(tmp_path):
    """Gives caches of several workers of one machine."""
    return lambda: StateCache(tmp_path)


def files(root):
    return {file.name for file in (root / HERE.folder).iterdir()}


def test_a_state_is_found_again_by_its_version_alone(worker):
    one, other = worker(), worker()
    assert one.take(HERE, "first") is None
    one.put(HERE, "first", Cached(FIRST))
    assert one.take(HERE, "first") == Cached(FIRST)
    assert other.take(HERE, "first") == Cached(FIRST)
    other.put(HERE, "other", Cached({"head": b"2"}))
    for cache in (other, worker()):
        assert (cache.take(HERE, "first"), cache.take(HERE, "other")) == (None, Cached({"head": b"2"}))


def test_an_opened_state_is_taken_out_once_and_by_its_worker_alone(worker):
    one, opened = worker(), Opened()
    one.put(HERE, "first", Cached(FIRST, opened))
    assert worker().take(HERE, "first") == Cached(FIRST)
    assert one.take(HERE, "first") == Cached(FIRST, opened)
    assert one.take(HERE, "first") == Cached(FIRST)


def test_an_opened_state_of_another_version_is_never_given(worker):
    one = worker()
    one.put(HERE, "first", Cached(FIRST, Opened()))
    assert one.take(HERE, "second") is None
    assert one.take(HERE, "first") == Cached(FIRST)


def test_the_worker_that_folded_last_reads_no_file(tmp_path, worker):
    one = worker()
    one.put(HERE, "first", Cached(FIRST))
    for file in (tmp_path / HERE.folder).iterdir():
        file.unlink()
    assert one.take(HERE, "first").parts is FIRST
    assert one.take(HERE, "other") is None


def test_only_what_has_changed_is_written_and_read(tmp_path, worker):
    one, other = worker(), worker()
    one.put(HERE, "first", Cached(FIRST))
    before = files(tmp_path)
    second = other.take(HERE, "first").parts | {"head": b"2", "column/c": b"ccc"}
    other.put(HERE, "second", Cached(second))
    assert len(files(tmp_path) & before) == 1 + 2  # the index, and the parts a and b
    assert len(files(tmp_path)) == 1 + len(second)
    found = one.take(HERE, "second").parts
    assert found == second
    assert found["column/a"] is FIRST["column/a"]


def test_nothing_is_left_of_what_is_no_longer_used(tmp_path, worker):
    one = worker()
    for number in range(5):
        one.put(HERE, f"version {number}", Cached({f"column/{number}": b"data", "head": b"%d" % number}))
    assert len(files(tmp_path)) == 1 + 2


def test_a_state_whose_files_were_taken_away_is_not_there(tmp_path, worker):
    worker().put(HERE, "first", Cached(FIRST))
    for file in (tmp_path / HERE.folder).iterdir():
        if file.name != "index":
            file.unlink()
    assert worker().take(HERE, "first") is None


def test_a_worker_whose_version_is_not_asked_for_writes_all_parts_anew(worker):
    """Its attempt was not kept: another worker's files are not those that it knows."""
    mine = worker()
    mine.put(HERE, "attempt", Cached(FIRST))
    worker().put(HERE, "second", Cached(FIRST))
    assert mine.take(HERE, "third") is None
    mine.put(HERE, "fourth", Cached(FIRST))
    assert worker().take(HERE, "fourth") == Cached(FIRST)


def test_each_shard_and_query_has_a_place_of_its_own(worker):
    places = [("query", "events", 3), ("query", "events", 4), ("query", "statistics", 3), ("other", "events", 3)]
    cache = worker()
    for place in places:
        cache.put(Place(*place), "version", Cached({"head": repr(place).encode()}))
    for one in (cache, worker()):
        assert [one.take(Place(*place), "version").parts["head"] for place in places] == [
            repr(place).encode() for place in places
        ]
