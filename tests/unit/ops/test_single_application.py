"""All jobs in one process: what ends one of them ends all, with its own error."""

import threading

import pytest

from jobs.runtime.settings import Settings
from ops import single_application as together


@pytest.fixture
def settings(tmp_path, monkeypatch):
    monkeypatch.setattr(together, "check_surroundings", lambda *_: None)
    return Settings(home=tmp_path, profile="small")


def test_an_indexer_that_fails_ends_the_queries_and_is_told(settings, monkeypatch):
    ended = []

    def queries(name, start, settings, topics, stop):
        assert stop.wait(10)
        ended.append(name)

    def index(*_):
        raise RuntimeError("no index")

    monkeypatch.setattr(together, "run_queries", queries)
    monkeypatch.setattr(together.indexer, "run", index)
    with pytest.raises(RuntimeError, match="no index"):
        together.run(settings, threading.Event())
    assert ended == ["all"]


def test_a_query_that_fails_ends_the_indexer_and_is_told(settings, monkeypatch):
    ended = []

    def queries(*_):
        raise RuntimeError("no query")

    def index(_settings, _topics, stop):
        assert stop.wait(10)
        ended.append("indexer")

    monkeypatch.setattr(together, "run_queries", queries)
    monkeypatch.setattr(together.indexer, "run", index)
    with pytest.raises(RuntimeError, match="no query"):
        together.run(settings, threading.Event())
    assert ended == ["indexer"]
