"""The indices of a generation: which one a document goes to, when the next one begins, when one is deleted.

A document's index follows from its kind, window and time, so a batch that is repeated finds it there. Where a span of
time has several indices, each document is looked up by its id in those before the last. Decision 73.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import structlog
from elasticsearch import Elasticsearch
from prometheus_client import Counter, Gauge

from connectors.sinks.elasticsearch_errors import RequestRefused, Retry, Unavailable, classified_errors
from connectors.sinks.elasticsearch_indices import IndexAdmin, Size
from infra.contract.indices import Lifecycle, Lifecycles
from infra.contract.topics import LIVE
from infra.errors import UserError
from jobs.indexer.batch import Kind
from jobs.indexer.documents import Document
from jobs.indexer.index_names import IndexName, anchor_of, covering, index_of, is_expired

AGEING_SECONDS = 30.0

EXPIRED = Counter("kappa_indexer_expired_documents", "Documents older than the retention of their index", ("index",))
INDICES = Gauge("kappa_indexer_indices", "Indices of this generation, by alias", ("index",))
INDEXED_BYTES = Gauge("kappa_indexer_index_bytes", "Bytes of these indices' primary shards", ("index",))
AGEING_FAILED = Gauge("kappa_indexer_ageing_failed", "1 while indices can't be measured, rolled over or deleted")

_log = structlog.get_logger(__name__)


def template_of(kind: Kind) -> dict[str, Any]:
    """The index template of a kind of documents, as Elasticsearch takes it."""
    template: dict[str, Any] = json.loads((Path(__file__).parent / f"{kind}.template.json").read_text())
    return template


class Indices:
    """The indices of one generation, as they were when last looked at, and those that were made since."""

    def __init__(self, client: Elasticsearch, retry: Retry, lifecycles: Lifecycles, generation: str) -> None:
        self._patient, self._once = IndexAdmin(client, retry), IndexAdmin(client, _once)
        self._lifecycles, self._generation = lifecycles, generation
        self._aliases: dict[Kind, frozenset[str]] = {}  # that each index of a kind has
        self._names: dict[Kind, set[IndexName]] = {}
        self._places: dict[tuple[str, str, int], tuple[IndexName, ...]] = {}  # remembered results
        self._due = 0.0

    def prepare(self, kinds: set[Kind]) -> None:
        """Put the templates, add the fields that older indices lack, and learn which indices there are. Idempotent.

        Raises UserError if an index has other types for these fields, or a former version's has the alias' name.
        """
        for kind in kinds:
            alias, template = index_of(kind, self._generation), template_of(kind)
            self._patient.put_template(f"kappa-{kind}", template)
            self._patient.create(anchor_of(alias), [alias])
            self._patient.put_mapping(f"{alias}.*", template["template"]["mappings"])
            if self._generation == LIVE and not self._patient.has_alias(f"kappa-{kind}"):
                self._patient.add_alias(f"kappa-{kind}", f"{alias}.*")
            self._names[kind] = set()
        self.look()

    def look(self) -> None:
        """Learn which indices there are: other indexers make some, too."""
        for kind in self._names:
            self._learn(kind, self._patient.aliases(f"{index_of(kind, self._generation)}.*"))

    def _learn(self, kind: Kind, found: Mapping[str, frozenset[str]]) -> None:
        alias = index_of(kind, self._generation)
        self._aliases[kind] = found.get(anchor_of(alias), frozenset({alias}))
        self._names[kind] = {name for text in found if (name := IndexName.parse(text))}
        self._places.clear()
        INDICES.labels(alias).set(len(self._names[kind]))

    def places(self, kind: Kind, document: Document) -> tuple[str, ...]:
        """The indices in which a document may be, the last of which takes new ones; none if it is out of date."""
        lifecycle = self._lifecycles.of(kind, document)
        assert lifecycle, "the documents of windows that aren't indexed are not made"
        hour = document["@timestamp"] // 3_600_000
        key = kind, lifecycle.name, hour
        if key not in self._places:
            self._places[key] = self._covering(kind, lifecycle, hour * 3_600_000)
        if not self._places[key]:
            EXPIRED.labels(index_of(kind, self._generation)).inc()
        return tuple(map(str, self._places[key]))

    def _covering(self, kind: Kind, lifecycle: Lifecycle, time_milli: int) -> tuple[IndexName, ...]:
        if found := covering(self._names[kind], lifecycle.name, time_milli):
            return found
        first = IndexName.first(index_of(kind, self._generation), lifecycle, time_milli)
        if is_expired(first, lifecycle, self._names[kind]):
            return ()
        self._create(kind, first)
        return (first,)

    def _create(self, kind: Kind, name: IndexName) -> None:
        # As they are now: a promotion may have moved them since the indices were looked at.
        aliases = self._patient.aliases(anchor_of(name.alias)).values()
        self._patient.create(str(name), next(iter(aliases), frozenset({name.alias})))
        self._names[kind].add(name)
        self._places.clear()
        _log.info("index created", index=str(name))

    def roll(self, index: str) -> bool:
        """Begin the next index for the time of one that can take no more; False if there is one already."""
        name = IndexName.parse(index)
        assert name, index
        kind = next(kind for kind in self._names if name.alias == index_of(kind, self._generation))
        if covering(self._names[kind], name.group, name.start)[-1] != name:
            return False
        self._create(kind, name.following())
        return True

    def age(self) -> None:
        """Every so often: roll over what is full, delete what is out of date, give each index its aliases.

        What fails is logged, shown by a metric, and tried again the next time: documents are written all the same.
        """
        if time.monotonic() < self._due:
            return
        self._due = time.monotonic() + AGEING_SECONDS
        failed = [kind for kind in self._names if not self._age(kind)]
        AGEING_FAILED.set(bool(failed))

    def _age(self, kind: Kind) -> bool:
        alias = index_of(kind, self._generation)
        try:
            found = self._once.aliases(f"{alias}.*")
            self._learn(kind, found)
            self._align(kind, found)
            sizes = self._once.sizes(f"{alias}.*")
            INDEXED_BYTES.labels(alias).set(sum(size.bytes for size in sizes.values()))
            for name in [*self._names[kind]]:
                self._age_one(kind, name, sizes.get(str(name)))
        except (Unavailable, RequestRefused, UserError) as error:
            _log.warning("indices not aged", index=alias, reason=str(error))
            return False
        return True

    def _age_one(self, kind: Kind, name: IndexName, size: Size | None) -> None:
        lifecycle = self._lifecycle(kind, name)
        if is_expired(name, lifecycle, self._names[kind]):
            self._once.delete(str(name))
            self._names[kind].discard(name)
            self._places.clear()
            _log.info("index deleted", index=str(name), retention=str(lifecycle.retention))
        elif size and (size.documents >= lifecycle.documents or size.bytes >= lifecycle.bytes):
            self.roll(str(name))

    def _align(self, kind: Kind, found: Mapping[str, frozenset[str]]) -> None:
        """Give each index the anchor's aliases: a promotion may have moved them while an index was made."""
        for index, has in found.items():
            if IndexName.parse(index):
                for alias in self._aliases[kind] - has:
                    self._once.add_alias(alias, index)
                if (promoted := f"kappa-{kind}") in has - self._aliases[kind]:
                    self._once.remove_alias(promoted, index)

    def _lifecycle(self, kind: Kind, name: IndexName) -> Lifecycle:
        """That by which an index was made; of one that is no longer declared, the last of its kind."""
        declared = self._lifecycles.kinds[kind]
        return next((one for one in declared if one.name == name.group), declared[-1])


def _once(call: Callable[[], Any]) -> Any:
    with classified_errors():
        return call()
