"""Why a broker refuses a client. librdkafka says so through a callback alone; the call itself only times out.

A wrong password may be one that has been changed: a client that hears of it asks for the present one.
"""

import logging
import re
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from confluent_kafka import KafkaError

# Of the errors that aren't ours by their code: what a broker says of a certificate.
_ALERT = re.compile(r"alert (?:bad certificate|certificate|unknown ca|access denied)", re.IGNORECASE)
_OURS = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
_LOG_SECONDS = 60.0  # a client that is refused tries again several times a second

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # of a command, which says it in its own words

Login = tuple[str, str]


class Client(Protocol):
    """A client of confluent_kafka whose name and password can be changed."""

    def set_sasl_credentials(self, username: str, password: str) -> Any:
        """Use these for new connections."""


C = TypeVar("C", bound=Client)


class _Heard:
    """What this process's clients were told, and how the present password is found; safe for several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last: tuple[float, KafkaError] | None = None
        self.logged = float("-inf")
        self.renew: Callable[[], Login | None] | None = None


_heard = _Heard()


def renew_logins_by(login: Callable[[], Login | None]) -> None:
    """Have clients that are refused ask `login` for name and password: None for none."""
    _heard.renew = login


def refusal_since(moment: float) -> KafkaError | None:
    """The last refusal that a client was told of since a moment of `time.monotonic`, if there was one."""
    with _heard.lock:
        last = _heard.last
    return last[1] if last and last[0] >= moment else None


class Hearing:
    """The `error_cb` of one client. Bind it to the client once that is made."""

    def __init__(self, login: Login | None) -> None:
        self._login = login
        self._client: Callable[[], Client | None] = lambda: None

    def bind(self, client: C) -> C:
        """Let it change the client's password; returns the client."""
        self._client = weakref.ref(client)
        return client

    def __call__(self, error: KafkaError) -> None:
        """Keep the error if it is a refusal, and give the client the present password if that is another one."""
        if error.code() not in _OURS and not _ALERT.search(error.str()):
            return
        now = time.monotonic()
        with _heard.lock:
            _heard.last = now, error
            is_news = now - _heard.logged > _LOG_SECONDS
            _heard.logged = now if is_news else _heard.logged
        if is_news:
            _log.warning("refused by Kafka: %s", error.str())
        if error.code() == KafkaError._AUTHENTICATION:
            self._renew()

    def _renew(self) -> None:
        client, login = self._client(), _heard.renew() if _heard.renew else None
        if client and login and login != self._login:
            client.set_sasl_credentials(*login)
            self._login = login
