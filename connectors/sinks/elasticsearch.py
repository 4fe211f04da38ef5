"""An Elasticsearch sink that retries for ever: a bulk ends when each document was written or refused for its content.

An outage or a full queue isn't the document's fault, so the sink waits until it is over. The caller provides the wait
(`sleep`), and gives up by raising from it. A request that is refused as a whole is cut in halves until the document at
fault is alone. The sink uses only what Elasticsearch's minimal server has.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import orjson
import structlog
from elasticsearch import ApiError, BadRequestError, Elasticsearch, OrjsonSerializer, UnsupportedProductError
from elasticsearch.exceptions import TransportError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_random_exponential

from infra.errors import UserError

T = TypeVar("T")

CHUNK_DOCUMENTS = 2_000
CHUNK_BYTES = 5_000_000  # Elasticsearch takes 100 MB (http.max_content_length), a proxy in front of it perhaps 10
LARGEST_BYTES = 20_000_000  # of a document: no record has so many
REQUEST_SECONDS = 30
LONGEST_PAUSE_SECONDS = 10

BAD_REQUEST = 400
SERVER_ERROR = 500  # of one document: a fault of the server's code at this one, or of a shard
FAILURES = 10  # after so many, over half a minute, it is asked whose
CONFLICT = 409  # of an external version: the index has this state of the document or a newer one
# The errors with status 400 that concern the index, not the document.
INDEX_FAULTS = frozenset({"index_closed_exception", "validation_exception", "invalid_index_name_exception"})
FULL = re.compile(r"number of documents in .* exceed", re.IGNORECASE)  # of a shard: 2^31 - 129
PROBE = "kappa-probe"  # the id of a document that never exists

_log = structlog.get_logger(__name__)


class Unavailable(Exception):
    """Elasticsearch can't serve the request now; the sink retries it."""


class RequestRefused(Exception):
    """Elasticsearch refuses a request as a whole, for something in it: to repeat it is no use."""


@dataclass(frozen=True)
class Action:
    """A document to be written whole under its id; with a `version`, unless the index has a newer one (external)."""

    index: str
    id: str
    document: Mapping[str, Any]
    version: int | None = None

    def lines(self) -> bytes:
        """Its two lines of a bulk request. Raises TypeError if the document can't be written as JSON."""
        meta: dict[str, Any] = {"_index": self.index, "_id": self.id}
        if self.version is not None:
            meta |= {"version": self.version, "version_type": "external_gte"}
        return orjson.dumps({"index": meta}) + b"\n" + orjson.dumps(self.document)


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
        """Write the documents; returns the reason of each refused one by its place in the list.

        Raises:
            UserError: an index is full, or the credentials don't suffice.
        """
        refused: dict[int, str] = {}
        failures: Counter[int] = Counter()
        for chunk in _chunks(actions, refused):
            self._retry(lambda chunk=chunk: self._bulk(chunk, refused, failures))  # type: ignore[misc]
        return refused

    def _bulk(self, pending: dict[int, tuple[Action, bytes]], refused: dict[int, str], failures: Counter[int]) -> None:
        """Send the pending actions once, in halves where they are refused together.

        Removes those that were written or refused; raises Unavailable if some are left.
        """
        reason = ""
        parts = [list(pending)] if pending else []
        while parts:
            part = parts.pop()
            try:
                results = self._send(part, [pending[number][1] for number in part])
            except RequestRefused as error:
                if len(part) > 1:
                    parts += [part[len(part) // 2 :], part[: len(part) // 2]]
                    continue
                self._probe(pending[part[0]][0], str(error))
                refused[part[0]] = str(error)
                del pending[part[0]]
                continue
            for number, result in zip(part, results, strict=True):
                action = pending[number][0]
                failures[number] += result["status"] == SERVER_ERROR
                if result["status"] < 300 or result["status"] == CONFLICT:
                    del pending[number]
                elif _is_refused(result, action.index) or (
                    failures[number] >= FAILURES and self._probe(action, _reason(result["error"])) < SERVER_ERROR
                ):
                    refused[number] = _reason(result["error"])
                    del pending[number]
                else:
                    reason = _reason(result["error"])
        if pending:
            raise Unavailable(reason)

    def _send(self, numbers: Sequence[int], lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """The result of each action of one bulk request. Raises RequestRefused, or Unavailable."""
        with _classified_errors():
            items = self._client.bulk(operations=lines)["items"]  # type: ignore[arg-type]  # the lines as they are
        if len(items) != len(numbers):
            raise Unavailable(f"{len(items)} results of {len(numbers)} documents")
        return [next(iter(item.values())) for item in items]

    def _probe(self, action: Action, reason: str) -> int:
        """The status of a delete of nothing in the same shard; raises Unavailable if every bulk is refused."""
        meta = {"_index": action.index, "_id": PROBE, "routing": action.id}
        try:
            return int(self._send([0], [orjson.dumps({"delete": meta})])[0]["status"])
        except RequestRefused as error:
            raise Unavailable(f"refuses every bulk request: {reason}") from error

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
        try:
            for attempt in retrying:
                with attempt, _classified_errors():
                    result = call()
        except RequestRefused as error:  # no document is at fault
            raise UserError(f"elasticsearch_url: {error}; see that it is Elasticsearch 8 or later") from error
        return result


@contextmanager
def _classified_errors() -> Iterator[None]:
    """Turn errors that pass by themselves into Unavailable, those of the credentials into UserError.

    What is left is RequestRefused.
    """
    try:
        yield
    except UnsupportedProductError as error:  # the answer is somebody else's: a gateway's
        raise Unavailable(error.message) from error
    except ApiError as error:
        if error.status_code in {401, 403}:
            raise UserError(f"elasticsearch_user: {error.message}; give a user that may write these indices") from error
        # Elasticsearch explains its errors: one without a body is from a gateway that has no server behind it.
        is_explained = bool(error.body) or error.status_code in {400, 413}
        if error.status_code in {408, 429} or error.status_code >= 500 or not is_explained:
            raise Unavailable(f"{error.status_code} {error.message}") from error
        raise RequestRefused(f"{error.status_code} {error.message}: {_detail(error)}") from error
    except TransportError as error:  # no connection, no answer in time, or one that isn't JSON
        raise Unavailable(error.message) from error


def _chunks(actions: Iterable[Action], refused: dict[int, str]) -> Iterator[dict[int, tuple[Action, bytes]]]:
    """The actions with their lines, by place in the list, in pieces of bounded size."""
    chunk: dict[int, tuple[Action, bytes]] = {}
    size = 0
    for number, action in enumerate(actions):
        try:
            lines = action.lines()
        except TypeError as error:
            refused[number] = f"not JSON: {error}"
            continue
        if len(lines) > LARGEST_BYTES:
            refused[number] = f"document of {len(lines)} bytes; there may be at most {LARGEST_BYTES}"
            continue
        if chunk and (len(chunk) >= CHUNK_DOCUMENTS or size + len(lines) > CHUNK_BYTES):
            yield chunk
            chunk, size = {}, 0
        chunk[number] = action, lines
        size += len(lines)
    if chunk:
        yield chunk


def _is_refused(result: Mapping[str, Any], index: str) -> bool:
    """Whether a document is refused for its content. Raises UserError if its index is full."""
    error = result["error"]
    if FULL.search(str(error.get("reason"))):
        raise UserError(
            f"index={index}: {error['reason']}: a shard is full; delete documents that are no longer needed, or replay "
            "into a new generation (docs/how-to/limits.md)"
        )
    return result["status"] == BAD_REQUEST and error["type"] not in INDEX_FAULTS


def _reason(error: Mapping[str, Any]) -> str:
    """The text of an error with its causes, which often say more than the error itself."""
    text = f"{error.get('type')}: {error.get('reason')}"
    return f"{text} ({_reason(error['caused_by'])})" if error.get("caused_by") else text


def _detail(error: ApiError) -> str:
    """What the body of an error says, in short."""
    body = error.body if isinstance(error.body, dict) else {}
    found = body.get("error")
    return _reason(found) if isinstance(found, dict) else str(error.body)[:500]


def _log_retry(state: RetryCallState) -> None:
    error = state.outcome.exception() if state.outcome else None
    _log.warning("elasticsearch unavailable", attempt=state.attempt_number, reason=str(error))
