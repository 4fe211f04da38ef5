"""Keeps the passwords of this process's clients of Kafka up to date: what changes where they stand reaches them all.

A client is told by a thread that looks there every few seconds. To wait for the broker's refusal would not do:
librdkafka tells of one only where a client is polled, and whoever writes transactions or asks for offsets never polls.
"""

import atexit
import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any, Protocol

Login = tuple[str, str]  # user name and password

SECONDS = 2.0  # between two looks

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # a command says it in its own words


class Client(Protocol):
    """A client of confluent_kafka whose name and password can be changed."""

    def set_sasl_credentials(self, username: str, password: str) -> Any:
        """Use these for new connections."""


def login_of(connection: Mapping[str, Any]) -> Login | None:
    """The name and the password in settings of confluent_kafka; None if they have none."""
    username, password = connection.get("sasl.username"), connection.get("sasl.password")
    return (username, password) if username and password else None


class Logins:
    """The clients of a process that have a password, and where the present one is found; safe for several threads."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # the collection of garbage may end a client at any time
        self._clients: weakref.WeakKeyDictionary[Client, Login] = weakref.WeakKeyDictionary()
        self._find: Callable[[], Login | None] = lambda: None
        self._thread: threading.Thread | None = None
        self._ended = threading.Event()

    def found_by(self, find: Callable[[], Login | None]) -> None:
        """Have `find` say what the login is now: None if there is none, or it can't be told."""
        self._find = find

    def present(self, connection: Mapping[str, Any]) -> Mapping[str, Any]:
        """The connection with the password that its user has by now."""
        newer = _newer(login_of(connection), self._find())
        return {**connection, "sasl.password": newer[1]} if newer else connection

    def keep(self, client: Client, login: Login) -> None:
        """Give the client each new password of its user from now on, as long as somebody else holds it."""
        with self._lock:
            self._clients[client] = login
            if not (self._thread and self._thread.is_alive()):  # a forked process has none
                self._thread = threading.Thread(target=self._watch, name="kafka logins", daemon=True)
                self._thread.start()
                atexit.register(self._end, self._thread)

    def forget(self, client: Client) -> None:
        """Leave the client alone, which is about to be closed."""
        with self._lock:
            self._clients.pop(client, None)

    def renew(self) -> None:
        """Give every client whose user has another password now that one."""
        now = self._find()
        with self._lock:
            behind = [(client, newer) for client, login in self._clients.items() if (newer := _newer(login, now))]
            for client, newer in behind:
                client.set_sasl_credentials(*newer)
                self._clients[client] = newer
        if behind:
            _log.info("%d clients of Kafka have the new password", len(behind))

    def _watch(self) -> None:
        while not self._ended.wait(SECONDS):
            try:
                self.renew()
            except Exception:
                _log.exception("clients of Kafka may have a former password")

    def _end(self, thread: threading.Thread) -> None:
        # A thread that Python's end finds within pydantic's Rust aborts the process, with its exit code.
        self._ended.set()
        thread.join()


def _newer(login: Login | None, now: Login | None) -> Login | None:
    """The present login, if it is another password of the same user."""
    return now if login and now and login[0] == now[0] and login != now else None


LOGINS = Logins()
