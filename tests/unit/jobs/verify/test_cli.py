import time

import pytest
from elasticsearch import ConnectionError

from jobs.verify import cli


class Restarting:
    """An observer whose Elasticsearch answers from the third question on."""

    asked = 0

    def __init__(self) -> None:
        self.truth = self

    def span(self) -> tuple[int, int]:
        return 1, 10

    def planned(self) -> int:
        return 0

    def faults(self) -> list[dict]:
        return []

    def told_until(self) -> int:
        return 9

    def look(self) -> None:
        self.asked += 1
        if self.asked < 3:
            raise ConnectionError("refused")

    def rows(self) -> list:
        return []

    def result(self, since: int, until: int) -> tuple[int, int]:
        return since, until


def test_an_elasticsearch_that_starts_is_waited_for(monkeypatch):
    monkeypatch.setattr(cli, "POLL_SECONDS", 0)
    assert cli._await(Restarting(), time.monotonic() + 60) == (1, 9)


def test_one_that_stays_away_is_told():
    with pytest.raises(ConnectionError):
        cli._await(Restarting(), time.monotonic() - 1)
