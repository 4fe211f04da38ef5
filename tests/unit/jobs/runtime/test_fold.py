from jobs.runtime.fold import _get, _near, _put


def test_a_state_is_found_again_by_its_version_alone(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"{tmp_path},/elsewhere")
    near = _near("query", "events", 3)
    assert _get(near, "first") is None
    _put(near, "first", b"\0state")
    assert _get(near, "first") == b"\0state"
    _put(near, "other", b"later")
    assert (_get(near, "first"), _get(near, "other")) == (None, b"later")
    assert [path.name for path in tmp_path.iterdir()] == ["shard-query-events-3"]


def test_each_shard_and_query_has_a_place_of_its_own(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(tmp_path))
    places = [("query", "events", 3), ("query", "events", 4), ("query", "statistics", 3), ("other", "events", 3)]
    for place in places:
        _put(_near(*place), "version", repr(place).encode())
    assert [_get(_near(*place), "version") for place in places] == [repr(place).encode() for place in places]
