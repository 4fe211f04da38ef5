"""An Elasticsearch sink that retries for ever: a bulk ends when each document was written or refused for its content.

An outage, a full queue or disk and missing rights aren't the document's fault, so the sink waits until they are over.
The caller provides the wait, and gives up by raising from it. A request that is refused as a whole is cut in halves
until the document at fault is alone. The sink uses only what Elasticsearch's minimal server has.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import orjson
from elastic_transport.client_utils import DEFAULT
from elasticsearch import Elasticsearch, OrjsonSerializer

from connectors.sinks.elasticsearch_errors import (
    Cause,
    RequestRefused,
    Retry,
    Unavailable,
    classified_errors,
    reason_of,
)
from connectors.sinks.elasticsearch_login import Identity, Login, node_class
from infra.errors import UserError

CHUNK_DOCUMENTS = 2_000
CHUNK_BYTES = 5_000_000  # Elasticsearch takes 100 MB (http.max_content_length), a proxy in front of it perhaps 10
LARGEST_BYTES = 20_000_000  # of a document: no record has so many
REQUEST_SECONDS = 30

BAD_REQUEST = 400
FORBIDDEN = (401, 403)
SERVER_ERROR = 500  # of one document: a fault of the server's code at this one, or of a shard
FAILURES = 10  # after so many, over half a minute, it is asked whose
CONFLICT = 409  # of an external version: the index has this state of the document or a newer one
# The errors with status 400 that concern the index, not the document.
INDEX_FAULTS = frozenset({"index_closed_exception", "validation_exception", "invalid_index_name_exception"})
FULL = re.compile(r"number of documents in .* exceed", re.IGNORECASE)  # of a shard: 2^31 - 129
PROBE = "kappa-probe"  # the id of a document that never exists


class IndexFull(Exception):
    """A shard of an index has as many documents as Lucene allows."""

    def __init__(self, index: str, reason: str) -> None:
        super().__init__(f"{index}: {reason}")
        self.index = index


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


@dataclass(frozen=True)
class Found:
    """A document that is there: in which index, and its content if that was asked for."""

    index: str
    document: dict[str, Any]


def connect(
    url: str, identity: Identity = MappingProxyType({}), renew: Callable[[], Identity] | None = None
) -> Elasticsearch:
    """A client that doesn't retry by itself. `identity` says who it is; `renew` is asked when the server refuses it.

    Raises:
        UserError: `url` has no scheme, host or port.
    """
    try:
        return Elasticsearch(
            url,
            max_retries=0,
            request_timeout=REQUEST_SECONDS,
            serializer=OrjsonSerializer(),
            node_class=node_class(Login(identity, renew or (lambda: identity))),
            ca_certs=identity.get("ca_certs", DEFAULT),
        )
    except ValueError as error:
        raise UserError(f"elasticsearch_url={url!r}: {error}") from error


class ElasticsearchSink:
    """Writes documents and finds them by id; while Elasticsearch is unavailable it repeats the request."""

    def __init__(self, client: Elasticsearch, retry: Retry) -> None:
        self._client = client
        self._retry = retry

    def find(self, index: str, ids: Sequence[str], *, source: bool = True) -> dict[str, Found]:
        """The documents that an index has, by id, in their last written state (not that of the last refresh)."""
        found: dict[str, Found] = {}
        for start in range(0, len(ids), CHUNK_DOCUMENTS):
            some = ids[start : start + CHUNK_DOCUMENTS]
            found |= self._retry(lambda some=some: self._find(index, some, source))  # type: ignore[misc]
        return found

    def write(self, actions: Sequence[Action]) -> dict[int, str]:
        """Write the documents; returns the reason of each refused one by its place in the list.

        Raises:
            IndexFull: an index can take no more; some of the documents may have been written.
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
        reason: str = ""
        cause: Cause | None = None
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
                    failures[number] >= FAILURES and self._probe(action, reason_of(result["error"])) < SERVER_ERROR
                ):
                    refused[number] = reason_of(result["error"])
                    del pending[number]
                else:
                    reason, cause = reason_of(result["error"]), "forbidden" if result["status"] in FORBIDDEN else None
        if pending:
            raise Unavailable(reason, cause)

    def _send(self, numbers: Sequence[int], lines: Sequence[bytes]) -> list[dict[str, Any]]:
        """The result of each action of one bulk request. Raises RequestRefused, or Unavailable."""
        with classified_errors():
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

    def _find(self, index: str, ids: Sequence[str], source: bool) -> dict[str, Found]:
        documents = self._client.mget(index=index, ids=ids, source=source)["docs"]
        if errors := [document["error"] for document in documents if "error" in document]:
            raise Unavailable(reason_of(errors[0]))
        return {one["_id"]: Found(index, one.get("_source") or {}) for one in documents if one["found"]}


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
    """Whether a document is refused for its content. Raises IndexFull if its index can take no more."""
    error = result["error"]
    if FULL.search(str(error.get("reason"))):
        raise IndexFull(index, error["reason"])
    return result["status"] == BAD_REQUEST and error["type"] not in INDEX_FAULTS
