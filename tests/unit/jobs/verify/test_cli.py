import time

import pytest
from elasticsearch import ConnectionError

from jobs.verify import cli


class Restarting:
    """Looks at an Elasticsearch that answers from the third time on, and has all from the fourth."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, last: bool) -> str | None:
        self.asked += 1
        if self.asked < 3:
            raise ConnectionError("refused")
        return "all" if self.asked > 3 else "what there is" if last else None


def test_an_elasticsearch_that_starts_is_waited_for(monkeypatch):
    monkeypatch.setattr(cli, "POLL_SECONDS", 0)
    assert cli._await(Restarting(), time.monotonic() + 60) == "all"


def test_one_that_stays_away_is_told():
    with pytest.raises(ConnectionError):
        cli._await(Restarting(), time.monotonic() - 1)


def test_after_the_deadline_it_is_what_there_is():
    look = Restarting()
    look.asked = 2
    assert cli._await(look, time.monotonic() - 1) == "what there is"
