"""The indexer: writes statistics, novelties, incidents and dead letters to Elasticsearch, idempotently.

A batch is read, converted and written; then its offsets are committed, in one Kafka transaction with its own dead
letters if it has any. If it is killed in between, the batch is read again and writes the same documents under the same
ids.
"""

import threading
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import structlog
from elasticsearch import Elasticsearch
from prometheus_client import Counter, Gauge

from connectors.sinks.elasticsearch import Action, ElasticsearchSink, Found, IndexFull, connect
from connectors.sinks.elasticsearch_errors import Cause, Retry
from infra.contract.indices import Lifecycles
from infra.contract.offsets import Offsets
from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.indexer import documents
from jobs.indexer.batch import MERGED, REFUSED, Batch, Fault, Key, Kind, Message, convert, lost, reject
from jobs.indexer.index_names import index_of
from jobs.indexer.indices import Indices
from jobs.indexer.intake import Abandoned, Intake, Interrupted, next_offsets
from jobs.indexer.outbox import Outbox
from jobs.indexer.settings import IndexerSettings
from jobs.runtime.settings import Settings, present_identity

DOCUMENTS = Counter("kappa_indexer_documents", "Documents written to Elasticsearch", ("index",))
REFUSALS = Counter("kappa_indexer_refused", "Records or documents that could not be indexed: they are dead letters")
LOST = Counter("kappa_indexer_lost_records", "Offsets deleted before they were indexed", ("topic", "partition"))
WAITING = Gauge(
    "kappa_indexer_waiting", "1 while the indexer waits for Elasticsearch: unavailable, forbidden, full", ("cause",)
)

FULL_SECONDS = 5.0
SHOWN = 5  # gaps in a message

_log = structlog.get_logger(__name__)


def run(settings: Settings, own: IndexerSettings, topics: TopicMap, stop: threading.Event) -> None:
    """Index a generation's topics until `stop` is set; then finish the batch and return.

    Indexers that share the partitions need different values of `settings.instance`: of two with the same one, the later
    fences the earlier one as soon as that writes a dead letter.

    Raises:
        UserError: the broker can't be reached, a topic is missing, another indexer took over, or retention has deleted
            what was not indexed.
    """
    name = settings.query_of("indexer")
    kinds = {topic.name: topic.index for topic in topics.indexed if topic.index}
    lifecycles = own.lifecycles({*kinds.values()})
    client = connect(settings.elasticsearch_url, settings.elasticsearch_identity(), present_identity)
    intake = Intake(settings.kafka_bootstrap, name, kinds, stop)
    try:
        outbox = Outbox(settings.kafka_bootstrap, f"{name}.{settings.instance}", topics["events.rejected"].name, stop)
        Indexer(
            intake,
            outbox,
            client,
            kinds=kinds,
            lifecycles=lifecycles,
            generation=settings.generation,
            skips_lost=own.lost == "skip",
        ).run(stop)
    finally:
        intake.close()


class Indexer:
    """Moves batches from Kafka (`Intake`) to Elasticsearch, and dead letters to Kafka (`Outbox`)."""

    def __init__(
        self,
        intake: Intake,
        outbox: Outbox,
        client: Elasticsearch,
        *,
        kinds: Mapping[str, Kind],
        lifecycles: Lifecycles,
        generation: str,
        skips_lost: bool,
    ) -> None:
        retry = Retry(self._wait)
        self._intake = intake
        self._outbox = outbox
        self._sink = ElasticsearchSink(client, retry)
        self._indices = Indices(client, retry, lifecycles, generation)
        self._kinds = kinds
        self._lifecycles = lifecycles
        self._generation = generation
        self._skips_lost = skips_lost
        self._assigned = -1  # the number of the assignment for which the indices are known

    def run(self, stop: threading.Event) -> None:
        """Index batch after batch until `stop` is set."""
        prepared = False
        while not stop.is_set():
            try:
                prepared = prepared or self._prepare()
                self._indices.age()
                self._index(self._intake.gather())
            except Abandoned as error:
                _log.info("batch abandoned", reason=str(error))
            self._resume()

    def _prepare(self) -> bool:
        self._indices.prepare({*self._kinds.values()})
        return True

    def _index(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        if self._assigned != self._intake.assignments:
            # Another indexer may have written these messages' documents before us, into indices that it has made.
            self._assigned = self._intake.assignments
            self._indices.look()
        faults = [fault for message in messages if (fault := lost(message))]
        if faults and not self._skips_lost:
            raise UserError(_overtaken(faults))
        for batch in convert(messages, self._kinds, self._lifecycles):
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
        while True:
            actions = self._actions(batch)
            try:
                refused = self._sink.write([*actions.values()])
            except IndexFull as full:
                _log.warning("index is full", index=full.index, reason=str(full))
                if not self._indices.roll(full.index):
                    self._wait(FULL_SECONDS, "full")
                continue
            keys = list(actions)
            for number, (kind, _) in enumerate(keys):
                if number not in refused:
                    DOCUMENTS.labels(index_of(kind, self._generation)).inc()
            return [Fault(batch.origins[keys[number]], REFUSED, reason) for number, reason in refused.items()]

    def _actions(self, batch: Batch) -> dict[Key, Action]:
        """How the documents of a batch are written, but for those that are there already, or out of date."""
        places = {
            (kind, one): self._indices.places(kind, document) for (kind, one), document in batch.documents.items()
        }
        found = self._find(places)
        actions = {}
        for key in [key for key, names in places.items() if names]:
            stored = found.get(key)
            if key[0] in MERGED:
                if stored:
                    self._merge(batch, key, stored)
                document = batch.documents[key]
                # An indexer that lost its partitions must not overwrite a newer state.
                version = documents.version(document)
                actions[key] = Action(stored.index if stored else places[key][-1], key[1], document, version)
            elif not stored:
                actions[key] = Action(places[key][-1], key[1], batch.documents[key])
        return actions

    def _find(self, places: Mapping[Key, tuple[str, ...]]) -> dict[Key, Found]:
        """What is stored of the documents: of those that are merged anywhere, of others in all but the last index."""
        asked: dict[tuple[Kind, str], list[str]] = defaultdict(list)
        for (kind, identity), names in places.items():
            for name in names if kind in MERGED else names[:-1]:
                asked[kind, name].append(identity)
        found: dict[Key, Found] = {}
        for (kind, name), ids in asked.items():
            stored = self._sink.find(name, ids, source=kind in MERGED)
            found |= {(kind, identity): one for identity, one in stored.items()}
        return found

    def _merge(self, batch: Batch, key: Key, stored: Found) -> None:
        try:
            batch.merge(key, documents.upgrade(stored.document))
        except (KeyError, TypeError, ValueError) as error:  # somebody else has written it
            _log.warning("stored document replaced", index=stored.index, id=key[1], reason=repr(error))

    def _rejects(self, faults: Sequence[Fault]) -> list[dict[str, Any]]:
        """A dead letter for each message at fault, but for dead letters themselves: their topic has them already."""
        by_message: dict[Message, list[Fault]] = defaultdict(list)
        for fault in faults:
            if self._kinds[fault.message.topic] == "rejected":
                _log.error("dead letter not indexed", offset=fault.message.offset, reason=fault.reason)
            else:
                by_message[fault.message].append(fault)
        return [reject(group[0], sum(fault.events for fault in group)) for group in by_message.values()]

    def _wait(self, seconds: float, cause: Cause) -> None:
        _waits_for(cause)
        self._intake.wait(seconds)

    def _resume(self) -> None:
        _waits_for(None)
        self._intake.resume()


def _waits_for(cause: Cause | None) -> None:
    for one in get_args(Cause):
        WAITING.labels(one).set(one == cause)


def _overtaken(faults: Sequence[Fault]) -> str:
    """What to tell a person where retention was faster than the indexer: how many records are lost, and of what."""
    places = (f"{fault.message.topic}-{fault.message.partition} {fault.reason}" for fault in faults[:SHOWN])
    more = f", and {len(faults) - SHOWN} partitions more" if len(faults) > SHOWN else ""
    return (
        f"indexer: {sum(fault.events for fault in faults)} records were deleted before they were indexed "
        f"({'; '.join(places)}{more}): it rested or waited for longer than the topics keep them. To go on "
        "behind them, with a dead letter for each gap: KAPPA_INDEXER_LOST=skip "
        "(docs/how-to/operate.md, 'Overtaken by retention')"
    )


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
