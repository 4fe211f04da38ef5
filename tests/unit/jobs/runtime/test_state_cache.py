import pytest

from jobs.runtime import state_cache as nearby
from jobs.runtime.state_cache import Nearby

FIRST = {"head": b"1", "column/a": b"aaaa", "column/b": b""}


@pytest.fixture(autouse=True)
def scratch(tmp_path, monkeypatch):
    """A folder for a machine's states, and a worker that has folded nothing."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    monkeypatch.setattr(nearby, "_LAST", {})
    return tmp_path


@pytest.fixture
def another_worker(monkeypatch):
    """From now on, it is another worker that does something; gives what the one before had."""

    def turn(last=None):
        before = nearby._LAST
        monkeypatch.setattr(nearby, "_LAST", {} if last is None else last)
        return before

    return turn


def here(shard=3):
    return Nearby.of("query", "events", shard)


def files(scratch):
    return {file.name for file in (scratch / "shard-query-events-3").iterdir()}


def test_a_state_is_found_again_by_its_version_alone(another_worker):
    assert here().get("first") is None
    here().put("first", FIRST)
    assert here().get("first") == FIRST
    another_worker()
    assert here().get("first") == FIRST
    here().put("other", {"head": b"2"})
    for _ in range(2):
        assert (here().get("first"), here().get("other")) == (None, {"head": b"2"})
        another_worker()


def test_the_worker_that_folded_last_reads_no_file(scratch):
    here().put("first", FIRST)
    for file in (scratch / "shard-query-events-3").iterdir():
        file.unlink()
    assert here().get("first") is FIRST
    assert here().get("other") is None


def test_only_what_has_changed_is_written_and_read(scratch, another_worker):
    here().put("first", FIRST)
    before = files(scratch)
    second = FIRST | {"head": b"2", "column/c": b"ccc"}
    first_worker = another_worker()
    assert here().get("first") == FIRST
    known = here().get("first")
    here().put("second", known | {"head": b"2", "column/c": b"ccc"})
    assert len(files(scratch) & before) == 1 + 2  # the index, and the parts a and b
    assert len(files(scratch)) == 1 + len(second)
    another_worker(first_worker)
    found = here().get("second")
    assert found == second
    assert found["column/a"] is FIRST["column/a"]


def test_nothing_is_left_of_what_is_no_longer_used(scratch):
    for number in range(5):
        here().put(f"version {number}", {f"column/{number}": b"data", "head": b"%d" % number})
    assert len(files(scratch)) == 1 + 2


def test_a_state_whose_files_were_taken_away_is_not_there(scratch, another_worker):
    here().put("first", FIRST)
    for file in (scratch / "shard-query-events-3").iterdir():
        if file.name != "index":
            file.unlink()
    another_worker()
    assert here().get("first") is None


def test_a_worker_whose_version_is_not_asked_for_writes_all_parts_anew(scratch, another_worker):
    """Its attempt was not kept: another worker's files are not those that it knows."""
    here().put("attempt", FIRST)
    mine = another_worker()
    here().put("second", FIRST)
    another_worker(mine)
    assert here().get("third") is None
    here().put("fourth", FIRST)
    another_worker()
    assert here().get("fourth") == FIRST


def test_each_shard_and_query_has_a_place_of_its_own(another_worker):
    places = [("query", "events", 3), ("query", "events", 4), ("query", "statistics", 3), ("other", "events", 3)]
    for place in places:
        Nearby.of(*place).put("version", {"head": repr(place).encode()})
    for _ in range(2):
        found = [Nearby.of(*place).get("version") for place in places]
        assert found == [{"head": repr(place).encode()} for place in places]
        another_worker()
