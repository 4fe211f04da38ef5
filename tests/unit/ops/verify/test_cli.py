import time
from functools import partial

import pytest
from elastic_transport import ApiResponseMeta, HttpHeaders, NodeConfig
from elasticsearch import AuthenticationException, ConnectionError

from infra.errors import UserError
from ops.verify import cli


class Restarting:
    """An observer whose Elasticsearch answers from the third question on."""

    asked = 0

    def __init__(self, to_come: int = 0) -> None:
        self.truth = self
        self.to_come = to_come

    def span(self) -> tuple[int, int]:
        return 1, 10

    def planned(self) -> int:
        return self.to_come

    def faults(self) -> list[dict]:
        return []

    def emitted_until(self) -> int:
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
    assert cli._await(partial(cli._compare, Restarting()), time.monotonic() + 60) == (1, 9)


def test_one_that_stays_away_is_an_error():
    with pytest.raises(UserError, match=r"^KAPPA_ELASTICSEARCH_URL: Elasticsearch does not answer: "):
        cli._await(partial(cli._compare, Restarting()), time.monotonic() - 1)


def test_one_that_refuses_us_is_not_waited_for():
    def look(last):
        meta = ApiResponseMeta(401, "1.1", HttpHeaders(), 0.1, NodeConfig("https", "es", 9200))
        body = {"error": {"type": "security_exception", "reason": "unable to authenticate user [elastic]"}}
        raise AuthenticationException("security_exception", meta, body)

    refused = "^KAPPA_ELASTICSEARCH_URL: 401 security_exception: unable to authenticate user .elastic.$"
    with pytest.raises(UserError, match=refused):
        cli._await(look, time.monotonic() + 60)


def test_after_the_deadline_it_is_what_there_is():
    observer = Restarting(to_come=1)
    observer.asked = 2
    assert cli._compare(observer, last=False) is None
    assert cli._await(partial(cli._compare, observer), time.monotonic() - 1) == (1, 9)
