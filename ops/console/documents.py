"""What the console reads from Elasticsearch."""

import copy
from collections.abc import Callable, Collection, Mapping
from typing import Any

from elasticsearch import NotFoundError

from connectors.sinks.elasticsearch import connect
from jobs.runtime.settings import Settings, present_identity
from ops.console.reads import SharedReads
from ops.console.settings import ConsoleSettings

ELASTICSEARCH = "Elasticsearch"

# Of documents that are added, changed late, or changed: how many, the newest write, the newest time. Each is looked up,
# none counted over all documents.
_NEWEST: Mapping[str, Any] = {
    "size": 1,
    "_source": False,
    "sort": [{"_seq_no": "desc"}],
    "track_total_hits": True,
    "aggs": {name: {"max": {"field": name}} for name in ("@timestamp", "updated")},
}


class Documents:
    """The documents of the promoted generation. Each read raises SourceDown if Elasticsearch can't be read now."""

    def __init__(self, settings: Settings, own: ConsoleSettings, indices: Callable[[str], Mapping[str, Any]]) -> None:
        """`indices` gives those of a generation, by the kind of their documents."""
        self.reads = SharedReads(ELASTICSEARCH, own.patience_seconds, own.fresh_seconds)
        # Asked as often as they are needed, and apart from the others: what changes makes those forget.
        self._signs = SharedReads(ELASTICSEARCH, own.patience_seconds, 0)
        self._client = connect(settings.elasticsearch_url, settings.elasticsearch_identity(), present_identity)
        self._indices = indices
        self._generation: str | None = None  # None: the promoted one

    def of(self, generation: str) -> "Documents":
        """Those of a generation, promoted or not, to be searched."""
        other = copy.copy(self)
        other._generation = generation
        return other

    def search(self, kind: str, **query: Any) -> dict[str, Any]:
        """What Elasticsearch answers over the documents of one kind; empty if there are none."""
        return self.reads.read((self._generation, kind, repr(query)), lambda: self._search(kind, query))

    def _search(self, kind: str, query: Mapping[str, Any]) -> dict[str, Any]:
        index = f"kappa-{kind}" if self._generation is None else ",".join(self._indices(self._generation)[kind])
        return dict(self._client.search(index=index, ignore_unavailable=True, **query).body)

    def newest(self, kinds: Collection[str]) -> dict[str, object]:
        """By kind what is another value once a document was added or changed: never an old answer."""
        return self._signs.read("documents", lambda: self._newest(kinds))

    def _newest(self, kinds: Collection[str]) -> dict[str, object]:
        looks = [part for kind in kinds for part in ({"index": f"kappa-{kind}", "ignore_unavailable": True}, _NEWEST)]
        answers = self._client.msearch(searches=looks)["responses"]
        return {kind: _sign(answer) for kind, answer in zip(kinds, answers, strict=True)}

    def find(self, kind: str, identity: str) -> dict[str, Any] | None:
        """A document by its id, or None if there is none."""
        return self.reads.read((kind, "id", identity), lambda: self._find(kind, identity))

    def _find(self, kind: str, identity: str) -> dict[str, Any] | None:
        # Not `get`: an alias may stand for several indices, of a generation and of its base.
        try:
            found = self._client.search(index=f"kappa-{kind}", query={"ids": {"values": [identity]}}, size=1)
        except NotFoundError:
            return None
        hits = found["hits"]["hits"]
        return dict(hits[0]["_source"]) if hits else None


def _sign(answer: Mapping[str, Any]) -> object:
    hits = answer.get("hits", {})
    writes = [(hit["_index"], hit["sort"]) for hit in hits.get("hits", ())]
    return hits.get("total"), writes, answer.get("aggregations"), answer.get("error")
