import pytest

from jobs.runtime import fold
from jobs.runtime.fold import _get, _is_same, _near, _put


@pytest.fixture
def scratch(tmp_path, monkeypatch):
    """A folder for a machine's states, and a worker that has folded nothing."""
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    monkeypatch.setattr(fold, "_LAST", {})
    return tmp_path


def another_worker(monkeypatch):
    monkeypatch.setattr(fold, "_LAST", {})


def test_a_state_is_found_again_by_its_version_alone(scratch, monkeypatch):
    near = _near("query", "events", 3)
    assert _get(near, "first") is None
    _put(near, "first", b"\0state")
    assert _get(near, "first") == b"\0state"
    another_worker(monkeypatch)
    assert _get(near, "first") == b"\0state"
    _put(near, "other", b"later")
    assert (_get(near, "first"), _get(near, "other")) == (None, b"later")
    another_worker(monkeypatch)
    assert (_get(near, "first"), _get(near, "other")) == (None, b"later")
    assert [path.name for path in scratch.iterdir()] == ["shard-query-events-3"]


def test_the_worker_that_folded_last_needs_no_file(scratch):
    near, state = _near("query", "events", 3), b"state"
    _put(near, "first", state)
    near.unlink()
    assert _get(near, "first") is state
    assert _get(near, "other") is None


def test_what_another_worker_has_folded_since_is_read(scratch, monkeypatch):
    near = _near("query", "events", 3)
    _put(near, "first", b"state")
    with monkeypatch.context() as other:
        another_worker(other)
        _put(near, "second", b"later")
    assert (_get(near, "first"), _get(near, "second")) == (b"state", b"later")


def test_each_shard_and_query_has_a_place_of_its_own(scratch, monkeypatch):
    places = [("query", "events", 3), ("query", "events", 4), ("query", "statistics", 3), ("other", "events", 3)]
    for place in places:
        _put(_near(*place), "version", repr(place).encode())
    for _ in ("here", "elsewhere"):
        assert [_get(_near(*place), "version") for place in places] == [repr(place).encode() for place in places]
        another_worker(monkeypatch)


@pytest.mark.parametrize(
    ("before", "was", "now", "expected"),
    [
        (b"..part", slice(2, 6), slice(1, 5), True),
        (b"..parT", slice(2, 6), slice(1, 5), False),
        (b"..part", slice(2, 5), slice(1, 5), False),  # a beginning
        (b"..part", slice(2, 6), slice(1, 4), False),
        (b"art", slice(0, 3), slice(1, 4), False),  # found elsewhere
        (b"..part", slice(2, 2), slice(5, 5), True),
    ],
)
def test_parts_are_the_same_if_all_their_bytes_are(before, was, now, expected):
    assert _is_same(before, was, b".part", now) is expected
