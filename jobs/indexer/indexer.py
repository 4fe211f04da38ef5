"""The indexer: statistics, novelties, incidents and rejected records into Elasticsearch, each document once.

A batch is read, converted and written; then its offsets are committed, in one Kafka transaction with its rejects if
it has any. Whatever is killed in between, the batch is read again and writes the same documents under the same ids.
"""

import json
import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog
from elasticsearch import Elasticsearch
from prometheus_client import Counter, Gauge

from connectors.sinks.elasticsearch import Action, ElasticsearchSink, connect
from infra.contract.offsets import Offsets
from infra.contract.topics import LIVE, TopicMap
from jobs.indexer import documents
from jobs.indexer.batch import LIVES, REFUSED, Batch, Fault, Key, Kind, Message, convert, reject
from jobs.indexer.intake import Abandoned, Intake, Interrupted, next_offsets
from jobs.indexer.outbox import Outbox
from jobs.runtime.settings import Settings

DOCUMENTS = Counter("kappa_indexer_documents", "Documents written to Elasticsearch", ("index",))
REFUSALS = Counter("kappa_indexer_refused", "Documents that couldn't be made, or that Elasticsearch refused")
WAITING = Gauge("kappa_indexer_waiting", "1 while Elasticsearch can't take documents")

_log = structlog.get_logger(__name__)


def run(settings: Settings, topics: TopicMap, stop: threading.Event, instance: str = "0") -> None:
    """Index a generation's topics until `stop` is set; then finish the batch and return.

    `instance` tells apart indexers that share the partitions. Of two with the same name, the later one fences the other
    when that rejects a record.

    Raises:
        UserError: the broker can't be reached, a topic is missing, or another indexer took over.
    """
    name = settings.query_of("indexer")
    kinds = {topic.name: topic.index for topic in topics.indexed if topic.index}
    client = connect(settings.elasticsearch_url, **settings.elasticsearch_identity())
    intake = Intake(settings.kafka_bootstrap, name, kinds, stop)
    try:
        outbox = Outbox(settings.kafka_bootstrap, f"{name}.{instance}", topics["events.rejected"].name, stop)
        Indexer(intake, outbox, client, kinds, settings.generation).run(stop)
    finally:
        intake.close()


def index_of(kind: Kind, generation: str) -> str:
    """The index that a generation of the chain fills with one kind of documents."""
    return f"kappa-{kind}-{generation}"


def template_of(kind: Kind) -> dict[str, Any]:
    """The index template of a kind of documents."""
    template: dict[str, Any] = json.loads((Path(__file__).parent / f"{kind}.template.json").read_text())
    return template


class Indexer:
    """Moves batches from the intake to Elasticsearch, and what can't go there to the outbox."""

    def __init__(
        self, intake: Intake, outbox: Outbox, client: Elasticsearch, kinds: Mapping[str, Kind], generation: str
    ) -> None:
        self._intake = intake
        self._outbox = outbox
        self._sink = ElasticsearchSink(client, self._wait)
        self._kinds = kinds
        self._generation = generation

    def run(self, stop: threading.Event) -> None:
        """Index until told to stop."""
        prepared = False
        while not stop.is_set():
            try:
                prepared = prepared or self._prepare()
                self._index(self._intake.gather())
            except Abandoned as error:
                _log.info("batch abandoned", reason=str(error))
            self._resume()

    def _prepare(self) -> bool:
        for kind in self._kinds.values():
            index = index_of(kind, self._generation)
            self._sink.prepare(f"kappa-{kind}", template_of(kind), index)
            if self._generation == LIVE:
                self._sink.point(f"kappa-{kind}", index)
        return True

    def _index(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        batch = convert(messages, self._kinds)
        faults = [*batch.faults, *self._write(batch)]
        try:
            self._commit(self._rejects(faults), next_offsets(messages))
        except Interrupted as error:
            _log.warning("commit interrupted", reason=str(error))
            self._intake.rewind()
        else:
            REFUSALS.inc(len(faults))

    def _commit(self, rejects: Sequence[dict[str, Any]], offsets: Offsets) -> None:
        if rejects:
            self._outbox.commit(rejects, offsets, self._intake.membership())
        else:
            self._intake.commit(offsets)

    def _write(self, batch: Batch) -> list[Fault]:
        """Write the documents; returns what Elasticsearch refused."""
        self._join_stored(batch)
        refused = self._sink.write([self._action(key, document) for key, document in batch.documents.items()])
        keys = list(batch.documents)
        for number, (kind, _) in enumerate(keys):
            if number not in refused:
                DOCUMENTS.labels(index_of(kind, self._generation)).inc()
        return [Fault(batch.origins[keys[number]], REFUSED, reason) for number, reason in refused.items()]

    def _join_stored(self, batch: Batch) -> None:
        """Novelties and incidents have a life of several records: join their states with those told before."""
        for life in LIVES:
            ids = [identity for kind, identity in batch.documents if kind == life]
            for identity, stored in self._sink.read(index_of(life, self._generation), ids).items():
                batch.merge((life, identity), stored)

    def _action(self, key: Key, document: documents.Document) -> Action:
        kind, identity = key
        action: Action = {"_index": index_of(kind, self._generation), "_id": identity, "_source": document}
        if kind in LIVES:  # an indexer that was cut off must not set a novelty back
            action |= {"version": documents.version(document), "version_type": "external_gte"}
        return action

    def _rejects(self, faults: Sequence[Fault]) -> list[dict[str, Any]]:
        """One record for each message at fault. A rejected record isn't rejected again: its topic has it already."""
        by_message: dict[Message, list[Fault]] = defaultdict(list)
        for fault in faults:
            if self._kinds[fault.message.topic] == "rejected":
                _log.error("rejected record not indexed", offset=fault.message.offset, reason=fault.reason)
            else:
                by_message[fault.message].append(fault)
        return [reject(group[0], len(group)) for group in by_message.values()]

    def _wait(self, seconds: float) -> None:
        WAITING.set(1)
        self._intake.wait(seconds)

    def _resume(self) -> None:
        WAITING.set(0)
        self._intake.resume()
