"""The indexer: writes statistics, novelties, incidents and dead letters to Elasticsearch, idempotently.

A batch is read, converted and written; then its offsets are committed, in one Kafka transaction with its own dead
letters if it has any. If it is killed in between, the batch is read again and writes the same documents under the same
ids.
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
from jobs.indexer.batch import MERGED, REFUSED, Batch, Fault, Key, Kind, Message, convert, lost, reject
from jobs.indexer.intake import Abandoned, Intake, Interrupted, next_offsets
from jobs.indexer.outbox import Outbox
from jobs.runtime.settings import Settings

DOCUMENTS = Counter("kappa_indexer_documents", "Documents written to Elasticsearch", ("index",))
REFUSALS = Counter("kappa_indexer_refused", "Records or documents that could not be indexed: they are dead letters")
LOST = Counter("kappa_indexer_lost_records", "Offsets deleted before they were indexed", ("topic", "partition"))
WAITING = Gauge("kappa_indexer_waiting", "1 while Elasticsearch is unavailable and the indexer waits for it")

_log = structlog.get_logger(__name__)


def run(settings: Settings, topics: TopicMap, stop: threading.Event, instance: str = "0") -> None:
    """Index a generation's topics until `stop` is set; then finish the batch and return.

    Indexers that share the partitions need different values of `instance`: of two with the same one, the later fences
    the earlier one as soon as that writes a dead letter.

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
    """The name of the index that has a generation's documents of one kind."""
    return f"kappa-{kind}-{generation}"


def template_of(kind: Kind) -> dict[str, Any]:
    """The index template of a kind of documents, as Elasticsearch takes it."""
    template: dict[str, Any] = json.loads((Path(__file__).parent / f"{kind}.template.json").read_text())
    return template


class Indexer:
    """Moves batches from Kafka (`Intake`) to Elasticsearch, and dead letters to Kafka (`Outbox`)."""

    def __init__(
        self, intake: Intake, outbox: Outbox, client: Elasticsearch, kinds: Mapping[str, Kind], generation: str
    ) -> None:
        self._intake = intake
        self._outbox = outbox
        self._sink = ElasticsearchSink(client, self._wait)
        self._kinds = kinds
        self._generation = generation

    def run(self, stop: threading.Event) -> None:
        """Index batch after batch until `stop` is set."""
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
        faults = [fault for message in messages if (fault := lost(message))]
        for batch in convert(messages, self._kinds):
            faults += [*batch.faults, *self._write(batch)]
        try:
            self._commit(self._rejects(faults), next_offsets(messages))
        except Interrupted as error:
            _log.warning("commit interrupted", reason=str(error))
            self._intake.rewind()
        else:
            REFUSALS.inc(len(faults))
            _report_gaps(messages)

    def _commit(self, rejects: Sequence[dict[str, Any]], offsets: Offsets) -> None:
        if rejects:
            self._outbox.commit(rejects, offsets, self._intake.membership())
        else:
            self._intake.commit(offsets)

    def _write(self, batch: Batch) -> list[Fault]:
        """Write the documents of a batch; returns a fault for each document that Elasticsearch refused."""
        self._merge_stored(batch)
        refused = self._sink.write([self._action(key, document) for key, document in batch.documents.items()])
        keys = list(batch.documents)
        for number, (kind, _) in enumerate(keys):
            if number not in refused:
                DOCUMENTS.labels(index_of(kind, self._generation)).inc()
        return [Fault(batch.origins[keys[number]], REFUSED, reason) for number, reason in refused.items()]

    def _merge_stored(self, batch: Batch) -> None:
        """Merge the batch's novelties and incidents with what earlier batches have stored of them."""
        for merged in MERGED:
            ids = [identity for kind, identity in batch.documents if kind == merged]
            for identity, stored in self._sink.read(index_of(merged, self._generation), ids).items():
                try:
                    batch.merge((merged, identity), documents.upgrade(stored))
                except (KeyError, TypeError, ValueError) as error:  # somebody else has written it
                    _log.warning("stored document replaced", index=merged, id=identity, reason=repr(error))

    def _action(self, key: Key, document: documents.Document) -> Action:
        kind, identity = key
        # Of a merged document, an indexer that lost its partitions must not overwrite a newer state.
        version = documents.version(document) if kind in MERGED else None
        return Action(index_of(kind, self._generation), identity, document, version)

    def _rejects(self, faults: Sequence[Fault]) -> list[dict[str, Any]]:
        """A dead letter for each message at fault, but for dead letters themselves: their topic has them already."""
        by_message: dict[Message, list[Fault]] = defaultdict(list)
        for fault in faults:
            if self._kinds[fault.message.topic] == "rejected":
                _log.error("dead letter not indexed", offset=fault.message.offset, reason=fault.reason)
            else:
                by_message[fault.message].append(fault)
        return [reject(group[0], sum(fault.events for fault in group)) for group in by_message.values()]

    def _wait(self, seconds: float) -> None:
        WAITING.set(1)
        self._intake.wait(seconds)

    def _resume(self) -> None:
        WAITING.set(0)
        self._intake.resume()


def _report_gaps(messages: Sequence[Message]) -> None:
    for gap in messages:
        if gap.is_gap:
            LOST.labels(gap.topic, gap.partition).inc(gap.next_offset - gap.offset)
            _log.error(
                "records were deleted before they were indexed: raise the topic's retention; a replay indexes them",
                topic=gap.topic,
                partition=gap.partition,
                first=gap.offset,
                last=gap.next_offset - 1,
            )
