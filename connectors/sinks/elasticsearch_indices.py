"""What ageing asks of Elasticsearch: only what its minimal server has, too, so no ILM and no data streams."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from elasticsearch import BadRequestError, Elasticsearch, NotFoundError

from connectors.sinks.elasticsearch_errors import Unavailable, detail
from infra.errors import UserError

T = TypeVar("T")
Call = Callable[[Callable[[], Any]], Any]  # runs a request: once, or until it succeeds (Retry)

DIGEST = "kappa"  # of a template, in its own metadata: Elasticsearch gives a template back in another form
EXISTS = "resource_already_exists_exception"
NAME_TAKEN = "invalid_alias_name_exception"


@dataclass(frozen=True)
class Size:
    """What an index has in its primary shards; `documents` counts deleted ones too, as Lucene's limit does."""

    documents: int
    bytes: int


class IndexAdmin:
    """Creates, measures and deletes indices, by the way of calling that is given."""

    def __init__(self, client: Elasticsearch, call: Call) -> None:
        self._client, self._call = client.indices, call

    def put_template(self, name: str, template: Mapping[str, Any]) -> None:
        """Put an index template, unless it is there: it also holds for an index that a write makes after its deletion.

        Where an operator has put it, a right to look is enough.
        """
        digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
        marked = {**template, "_meta": {**template.get("_meta", {}), DIGEST: digest}}
        if self._call(lambda: self._digest_of(name)) != digest:
            self._call(lambda: self._client.put_index_template(name=name, body=marked))

    def _digest_of(self, name: str) -> str | None:
        try:
            (found,) = self._client.get_index_template(name=name)["index_templates"]
        except NotFoundError:
            return None
        digest: str | None = found["index_template"].get("_meta", {}).get(DIGEST)
        return digest

    def create(self, index: str, aliases: Iterable[str]) -> None:
        """Create an index with these aliases, unless it exists.

        Raises UserError if an index has the name of one of the aliases.
        """
        self._call(lambda: self._create(index, {alias: {} for alias in aliases}))

    def _create(self, index: str, aliases: Mapping[str, Any]) -> None:
        try:
            self._client.create(index=index, aliases=aliases)
        except BadRequestError as error:
            if error.error == EXISTS:
                return
            if error.error == NAME_TAKEN:
                raise UserError(
                    f"index={index}: {detail(error)}; a former version made that index: replay into a new generation, "
                    "or delete it (docs/how-to/operate.md, 'Documents age')"
                ) from error
            raise Unavailable(detail(error)) from error  # such as the cluster's limit of shards

    def put_mapping(self, pattern: str, mappings: Mapping[str, Any]) -> None:
        """Add the fields that these indices lack. Raises UserError if one has another type."""

        def put() -> None:
            try:
                self._client.put_mapping(index=pattern, **mappings)
            except BadRequestError as error:
                raise UserError(
                    f"index={pattern}: {error.message}: {error.info}; replay into a new generation"
                ) from error

        self._call(put)

    def aliases(self, pattern: str) -> dict[str, frozenset[str]]:
        """The aliases of each index whose name fits the pattern."""
        found = self._call(lambda: self._client.get_alias(index=pattern).body)
        return {index: frozenset(one["aliases"]) for index, one in found.items()}

    def has_alias(self, alias: str) -> bool:
        """Whether any index has the alias."""
        return bool(self._call(lambda: self._client.exists_alias(name=alias)))

    def add_alias(self, alias: str, index: str) -> None:
        """Give an index, or all that fit a pattern, an alias more."""
        self._call(lambda: self._client.put_alias(index=index, name=alias))

    def remove_alias(self, alias: str, index: str) -> None:
        """Take an alias from an index."""
        self._call(lambda: self._client.delete_alias(index=index, name=alias))

    def sizes(self, pattern: str) -> dict[str, Size]:
        """The size of each index whose name fits the pattern."""
        found = self._call(lambda: self._client.stats(index=pattern, metric=["docs", "store"]).body["indices"])
        return {index: _size(one["primaries"]) for index, one in found.items()}

    def delete(self, index: str) -> None:
        """Delete an index, if it exists."""
        self._call(lambda: self._client.delete(index=index, ignore_unavailable=True))


def _size(primaries: Mapping[str, Any]) -> Size:
    documents = primaries["docs"]
    return Size(documents["count"] + documents["deleted"], primaries["store"]["size_in_bytes"])
