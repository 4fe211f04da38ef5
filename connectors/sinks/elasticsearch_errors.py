"""Which of Elasticsearch's errors pass by themselves, and the loop that waits for it."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal, TypeVar

import structlog
from elasticsearch import ApiError, UnsupportedProductError
from elasticsearch.exceptions import TransportError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from infra.errors import UserError

T = TypeVar("T")
Cause = Literal["unavailable", "forbidden", "full"]
Wait = Callable[[float, Cause], None]  # for so many seconds, and why; it gives up by raising

LONGEST_PAUSE_SECONDS = 10
# The server takes no more: its disk or its limit of shards. An operator, or the ageing of indices, makes room.
FULL = re.compile(r"flood-stage|maximum normal shards|no space left", re.IGNORECASE)

_log = structlog.get_logger(__name__)


class Unavailable(Exception):
    """Elasticsearch can't serve the request now: it is to be repeated."""

    def __init__(self, reason: str, cause: Cause | None = None) -> None:
        super().__init__(reason)
        self.cause: Cause = cause or ("full" if FULL.search(reason) else "unavailable")


class RequestRefused(Exception):
    """Elasticsearch refuses a request as a whole, for something in it: to repeat it is no use."""


class Retry:
    """Calls a function until Elasticsearch has answered it; in between it waits by `wait`."""

    def __init__(self, wait: Wait) -> None:
        self._wait = wait

    def __call__(self, call: Callable[[], T]) -> T:
        """The result of `call`. Raises UserError if the server understands no such request."""
        cause: Cause = "unavailable"

        def before_sleep(state: RetryCallState) -> None:
            nonlocal cause
            error = state.outcome.exception() if state.outcome else None
            cause = error.cause if isinstance(error, Unavailable) else cause
            _log.warning("elasticsearch unavailable", attempt=state.attempt_number, cause=cause, reason=str(error))

        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            wait=wait_random_exponential(multiplier=0.25, max=LONGEST_PAUSE_SECONDS),
            sleep=lambda seconds: self._wait(seconds, cause),
            before_sleep=before_sleep,
        )
        try:
            for attempt in retrying:
                with attempt, classified_errors():
                    result = call()
        except RequestRefused as error:  # no document is at fault
            raise UserError(f"elasticsearch_url: {error}; see that it is Elasticsearch 8 or later") from error
        return result


@contextmanager
def classified_errors() -> Iterator[None]:
    """Turn the client's errors into Unavailable where a repetition may help, else into RequestRefused.

    Missing rights may be given while the caller waits, so they are of the former.
    """
    try:
        yield
    except UnsupportedProductError as error:  # the answer is somebody else's: a gateway's
        raise Unavailable(error.message) from error
    except ApiError as error:
        if error.status_code in {401, 403}:
            raise Unavailable(f"{error.status_code} {detail(error)}", "forbidden") from error
        # Elasticsearch explains its errors: one without a body is from a gateway that has no server behind it.
        is_explained = bool(error.body) or error.status_code in {400, 413}
        if error.status_code in {408, 429} or error.status_code >= 500 or not is_explained:
            raise Unavailable(f"{error.status_code} {error.message}: {detail(error)}") from error
        raise RequestRefused(f"{error.status_code} {error.message}: {detail(error)}") from error
    except TransportError as error:  # no connection, no answer in time, or one that isn't JSON
        raise Unavailable(error.message) from error


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn the client's errors into a UserError with what the server said: for commands, which don't wait."""
    try:
        yield
    except ApiError as error:
        raise UserError(f"KAPPA_ELASTICSEARCH_URL: {error.status_code} {detail(error)}") from error
    except TransportError as error:
        raise UserError(f"KAPPA_ELASTICSEARCH_URL: Elasticsearch does not answer: {error.message}") from error


def reason_of(error: dict[str, Any]) -> str:
    """The text of an error with its causes, which often say more than the error itself."""
    text = f"{error.get('type')}: {error.get('reason')}"
    return f"{text} ({reason_of(error['caused_by'])})" if error.get("caused_by") else text


def detail(error: ApiError) -> str:
    """What the body of an error says, in short."""
    body = error.body if isinstance(error.body, dict) else {}
    found = body.get("error")
    return reason_of(found) if isinstance(found, dict) else str(error.body)[:500]
