"""Why a broker refuses a client. librdkafka says so through a callback alone; the call itself only times out."""

import logging
import re
import threading
import time

from confluent_kafka import KafkaError

# Of the errors that aren't ours by their code: what a broker says of a certificate.
_ALERT = re.compile(r"alert (?:bad certificate|certificate|unknown ca|access denied)", re.IGNORECASE)
_OURS = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
_LOG_SECONDS = 60.0  # a client that is refused tries again several times a second

_log = logging.getLogger(__name__)
_log.addHandler(logging.NullHandler())  # of a command, which says it in its own words


class _Heard:
    """What this process's clients were told; safe for several threads."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last: tuple[float, KafkaError] | None = None
        self.logged = float("-inf")


_heard = _Heard()


def refusal_since(moment: float) -> KafkaError | None:
    """The last refusal that a client was told of since a moment of `time.monotonic`, if there was one."""
    with _heard.lock:
        last = _heard.last
    return last[1] if last and last[0] >= moment else None


def hear(error: KafkaError) -> None:
    """Keep the error if it is a refusal: the `error_cb` of every client."""
    if error.code() not in _OURS and not _ALERT.search(error.str()):
        return
    now = time.monotonic()
    with _heard.lock:
        _heard.last = now, error
        is_news = now - _heard.logged > _LOG_SECONDS
        _heard.logged = now if is_news else _heard.logged
    if is_news:
        _log.warning("refused by Kafka: %s", error.str())
