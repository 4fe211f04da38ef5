"""An Elasticsearch sink that retries for ever: a bulk ends when each document was written or refused for its content.

An outage or a full queue isn't the document's fault, so the sink waits until it is over. The caller provides the wait
(`sleep`), and gives up by raising from it. The sink uses only what Elasticsearch's minimal server has.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import structlog
from elasticsearch import ApiError, BadRequestError, ConnectionError, ConnectionTimeout, Elasticsearch, OrjsonSerializer
from elasticsearch.helpers import streaming_bulk
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from infra.errors import UserError

T = TypeVar("T")
Action = dict[str, Any]

CHUNK_DOCUMENTS = 2_000
CHUNK_BYTES = 5_000_000
REQUEST_SECONDS = 30
LONGEST_PAUSE_SECONDS = 10

BAD_REQUEST = 400
CONFLICT = 409  # of an external version: the index has this state of the document or a newer one
# The errors with status 400 that concern the index, not the document.
INDEX_FAULTS = frozenset({"index_closed_exception", "validation_exception", "invalid_index_name_exception"})

_log = structlog.get_logger(__name__)


class Unavailable(Exception):
    """Elasticsearch can't serve the request now; the sink retries it."""


def connect(url: str, **identity: Any) -> Elasticsearch:
    """A client that doesn't retry by itself; `identity` are credentials, as options of elasticsearch-py's client.

    Raises:
        UserError: `url` has no scheme, host or port.
    """
    try:
        return Elasticsearch(
            url,
            max_retries=0,
            request_timeout=REQUEST_SECONDS,
            serializer=OrjsonSerializer(),
            **identity,
        )
    except ValueError as error:
        raise UserError(f"elasticsearch_url={url!r}: {error}") from error


class ElasticsearchSink:
    """Writes documents and reads them by id; while Elasticsearch is unavailable it retries, blocking in `sleep`."""

    def __init__(self, client: Elasticsearch, sleep: Callable[[float], None]) -> None:
        self._client = client
        self._sleep = sleep

    def prepare(self, name: str, template: Mapping[str, Any], index: str) -> None:
        """Put the index template `name`, and create `index` or add the fields that it lacks. Idempotent.

        Raises:
            UserError: the index has other types for these fields, or the credentials don't suffice.
        """
        self._retry(lambda: self._client.indices.put_index_template(name=name, **template))
        self._retry(lambda: self._create(index, template["template"]["mappings"]))

    def point(self, alias: str, index: str) -> None:
        """Point `alias` at `index`, unless it points at an index already."""
        if not self._retry(lambda: self._client.indices.exists_alias(name=alias)):
            self._retry(lambda: self._client.indices.put_alias(name=alias, index=index))

    def read(self, index: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        """The documents that exist, by id, in their last written state (not that of the last refresh)."""
        return self._retry(lambda: self._read(index, ids)) if ids else {}

    def write(self, actions: Sequence[Action]) -> dict[int, str]:
        """Write bulk actions (see `elasticsearch.helpers`); returns the reason of each refused one by list index."""
        pending = dict(enumerate(actions))
        refused: dict[int, str] = {}
        self._retry(lambda: self._bulk(pending, refused))
        return refused

    def _bulk(self, pending: dict[int, Action], refused: dict[int, str]) -> None:
        """Send the pending actions once; removes those that were written or refused.

        Raises Unavailable if some are left.
        """
        sent = list(pending.items())
        outcomes = streaming_bulk(
            self._client,
            [action for _, action in sent],
            chunk_size=CHUNK_DOCUMENTS,
            max_chunk_bytes=CHUNK_BYTES,
            raise_on_error=False,
        )
        reason = ""
        for (number, _), (ok, outcome) in zip(sent, outcomes, strict=True):
            (result,) = outcome.values()
            if ok or result["status"] == CONFLICT:
                del pending[number]
            elif _is_refused(result):
                refused[number] = _reason(result["error"])
                del pending[number]
            else:
                reason = _reason(result["error"])
        if pending:
            raise Unavailable(reason)

    def _read(self, index: str, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        found = self._client.mget(index=index, ids=ids)["docs"]
        if errors := [document["error"] for document in found if "error" in document]:
            raise Unavailable(_reason(errors[0]))
        return {document["_id"]: document["_source"] for document in found if document["found"]}

    def _create(self, index: str, mappings: Mapping[str, Any]) -> None:
        if not self._client.indices.exists(index=index):
            self._client.options(ignore_status=BAD_REQUEST).indices.create(index=index)
        try:
            self._client.indices.put_mapping(index=index, **mappings)
        except BadRequestError as error:
            raise UserError(f"index={index}: {error.message}: {error.info}; replay into a new generation") from error

    def _retry(self, call: Callable[[], T]) -> T:
        retrying = Retrying(
            retry=retry_if_exception_type(Unavailable),
            wait=wait_random_exponential(multiplier=0.25, max=LONGEST_PAUSE_SECONDS),
            sleep=self._sleep,
            before_sleep=_log_retry,
        )
        for attempt in retrying:
            with attempt, _classified_errors():
                result = call()
        return result


@contextmanager
def _classified_errors() -> Iterator[None]:
    """Turn errors that pass by themselves into Unavailable, and those of the credentials into UserError."""
    try:
        yield
    except (ConnectionError, ConnectionTimeout) as error:
        raise Unavailable(error.message) from error
    except ApiError as error:
        if error.status_code in {401, 403}:
            raise UserError(f"elasticsearch_user: {error.message}; give a user that may write these indices") from error
        # Elasticsearch explains its errors: one without a body is from a gateway that has no server behind it.
        if error.status_code in {408, 429} or error.status_code >= 500 or not error.body:
            raise Unavailable(f"{error.status_code} {error.message}") from error
        raise


def _is_refused(result: Mapping[str, Any]) -> bool:
    return result["status"] == BAD_REQUEST and result["error"]["type"] not in INDEX_FAULTS


def _reason(error: Mapping[str, Any]) -> str:
    """The text of an error with its causes, which often say more than the error itself."""
    text = f"{error['type']}: {error['reason']}"
    return f"{text} ({_reason(error['caused_by'])})" if error.get("caused_by") else text


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    _log.warning("elasticsearch unavailable", attempt=state.attempt_number, reason=str(error))
