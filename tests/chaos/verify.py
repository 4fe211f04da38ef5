"""Record by record: the simulator's truth, the topics, Delta and Elasticsearch against each other."""

import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from connectors.sinks.elasticsearch import connect
from infra.contract.indices import load_lifecycles
from jobs.archive.tables import Table, tables
from jobs.detector import shard as detector
from jobs.detector.settings import DetectorSettings
from jobs.incidents import fold as incidents
from jobs.indexer.batch import Batch, Message
from jobs.indexer.index_names import index_of
from jobs.runtime.shard_state import Input
from jobs.statistics.settings import load_windows
from jobs.statistics.shard import Shard
from ops.simulator import check
from ops.simulator.truth import line_identity, value_identity
from ops.verify.readback import documents
from tests.chaos.chain import Chain
from tests.chaos.reading import Place, Record, read_table, read_topic

EXAMPLES = 3


@dataclass
class Findings:
    """What differs, over all comparisons; `compared` counts what was looked at, by comparison."""

    lost: int = 0
    duplicated: int = 0
    wrong: int = 0
    compared: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)

    def multisets(self, what: str, expected: Counter, found: Counter) -> None:
        """Each of `expected` must be there as often, and nothing else."""
        lost, more = expected - found, found - expected
        self.add(what, expected.total(), lost.total(), more.total(), 0, [*lost][:EXAMPLES], [*more][:EXAMPLES])

    def mappings(self, what: str, expected: Mapping, found: Mapping) -> None:
        """The same keys with the same content."""
        lost, more = expected.keys() - found.keys(), found.keys() - expected.keys()
        wrong = [
            (key, expected[key], found[key]) for key in expected.keys() & found.keys() if expected[key] != found[key]
        ]
        self.add(what, len(expected), len(lost), len(more), len(wrong), [*lost][:3], [*more][:3], wrong[:1])

    def truth(self, what: str, report: check.Report) -> None:
        """A comparison with the simulator's truth."""
        self.add(what, report.events, report.lost, report.duplicated, report.wrong, report.examples[:EXAMPLES])

    def sums(self, what: str, expected: Mapping, found: Mapping) -> None:
        """Events and the sum of their identities, by whose they are."""
        for key in expected.keys() | found.keys():
            (wanted, identity), (events, seen) = expected.get(key, (0, 0)), found.get(key, (0, 0))
            wrong = int(wanted == events and identity != seen)
            self.add(what, wanted, max(0, wanted - events), max(0, events - wanted), wrong, key)

    def add(self, what: str, compared: int, lost: int, duplicated: int, wrong: int, *examples: Any) -> None:
        self.lost += lost
        self.duplicated += duplicated
        self.wrong += wrong
        self.compared[what] = self.compared.get(what, 0) + compared
        if lost or duplicated or wrong:
            self.examples.append(f"{what}: {lost} lost, {duplicated} doubled, {wrong} wrong: {examples!r:.900}")


def verify(chain: Chain) -> Findings:
    """Compare everything that the chain holds of its generation."""
    findings, truth = Findings(), chain.truth()
    log = {topic.name: read_topic(chain.settings.kafka_bootstrap, topic.name) for topic in chain.topics.archived}
    records = {name: log[chain.topics[name].name] for name in ("events", "statistics", "novelties", "incidents")}
    parsed = {name: [orjson.loads(record.value) for record in records[name]] for name in ("events", "statistics")}

    findings.truth("events: truth", check.compare_events(truth, _without_watermarks(parsed["events"])))
    findings.truth("statistics: truth", check.compare(truth, parsed["statistics"], chain.emitted_until()))
    ids = Counter(record["id"] for record in _without_watermarks(parsed["events"]))
    findings.multisets("events: ids", Counter(ids.keys()), ids)
    _compare_refused(findings, truth, log[chain.topics["events.late"].name], log[chain.topics["events.rejected"].name])
    compare_statistics(findings, records["events"], records["statistics"])
    compare_novelties(findings, records["statistics"], records["novelties"])
    expected = Counter(_expected_incidents(records["novelties"], chain.topics["novelties"].partitions))
    findings.multisets("incidents: fold", expected, Counter(_untimed(records["incidents"])))
    for table in tables(chain.topics):
        _compare_table(findings, chain, table, [r for topic in table.topics for r in log[topic.name]])
    _compare_documents(findings, chain, log)
    return findings


def _without_watermarks(records: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [record for record in records if "watermark_unix_nano" not in record]


def _by_partition(records: Iterable[Record]) -> Iterator[tuple[int, list[Record]]]:
    for partition, group in groupby(records, key=lambda record: record.place.partition):
        yield partition, list(group)


def compare_statistics(findings: Findings, events: list[Record], statistics: list[Record]) -> None:
    """Each partition of `statistics` is the fold of the same partition of `events`: bytes and order."""
    found = {partition: _untimed(records) for partition, records in _by_partition(statistics)}
    for partition, records in _by_partition(events):
        offsets, values = [r.place.offset for r in records], [r.value for r in records]
        topic = records[0].place.topic
        outputs = Shard(load_windows()).feed(Input(topic, partition, offsets, values))
        expected = [(output.key.encode(), output.value) for output in outputs if output.key and not output.topic]
        findings.multisets("statistics: fold", Counter(expected), Counter(found.get(partition, [])))
        findings.add("statistics: order", 0, 0, 0, int(expected != found.get(partition, [])), partition)


def compare_novelties(findings: Findings, statistics: list[Record], novelties: list[Record]) -> None:
    """`novelties` is the detector's fold of each partition of `statistics`: the same bytes."""
    expected = Counter(_expected_novelties(statistics))
    findings.multisets("novelties: fold", expected, Counter(_untimed(novelties)))


def _untimed(records: list[Record]) -> list[tuple[bytes, bytes]]:
    # How many watermarks there are depends on the batches; what they close does not.
    return [(record.key, record.value) for record in records if record.key is not None]


def _expected_novelties(statistics: list[Record]) -> Iterator[tuple[bytes, bytes]]:
    partitions = dict(_by_partition(statistics))
    for records in partitions.values():
        settings = DetectorSettings(shards=len(partitions))
        _, emitted = detector.fold(None, [record.value for record in records], settings)
        for novelty in emitted:
            yield novelty["machine"].encode(), orjson.dumps(novelty)


def _expected_incidents(novelties: list[Record], partitions: int) -> Iterator[tuple[bytes, bytes]]:
    placed = ((record.place.partition, record.value) for record in novelties)
    _, emitted = incidents.fold(None, placed, partitions)
    for incident in emitted:
        yield incident["id"].encode(), orjson.dumps(incident)


def _compare_refused(findings: Findings, truth: Path, late: list[Record], rejected: list[Record]) -> None:
    """Late and rejected events, by the identity of their content."""
    machines = {machine["machine"] for machine in orjson.loads((truth / "cloud.json").read_bytes())}
    late_truth, rejected_truth = (_lines(truth / f"{name}.jsonl") for name in ("late", "rejected"))
    found = [r for r in map(_parsed, late) if r["machine"] in machines]
    findings.sums("late: truth", _summed(late_truth), _identities((r, r["source"]["topic"]) for r in found))

    refused = [r for r in map(_parsed, rejected) if r["source"]["topic"].startswith("telemetry.")]
    batches = [(orjson.loads(r["batch"]), r["source"]["topic"]) for r in refused if "batch" in r]
    batches = [(record, topic) for record, topic in batches if record["machine"] in machines]
    future = [line for line in rejected_truth if line["code"] == "future"]
    findings.sums("future: truth", _summed(future), _identities(batches))
    malformed = Counter(line["sha256"] for line in rejected_truth if "sha256" in line)
    values = (base64.b64decode(record["value"]) for record in refused if "value" in record)
    findings.multisets("malformed: truth", malformed, Counter(sha256(value).hexdigest() for value in values))


def _parsed(record: Record) -> dict[str, Any]:
    return orjson.loads(record.value)


def _lines(file: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in file.read_bytes().splitlines()]


def _summed(lines: Iterable[Mapping[str, Any]]) -> dict[tuple, tuple[int, int]]:
    return _total(((line["topic"], line["machine"], line["kind"]), line["events"], line["identity"]) for line in lines)


def _identities(records: Iterable[tuple[Mapping[str, Any], str]]) -> dict[tuple, tuple[int, int]]:
    return _total(
        ((topic, record["machine"], record["kind"]), len(record["events"]["time_unix_nano"]), _identity(record))
        for record, topic in records
    )


def _total(parts: Iterable[tuple[tuple, int, int]]) -> dict[tuple, tuple[int, int]]:
    total: dict[tuple, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for key, events, identity in parts:
        total[key] = (total[key][0] + events, (total[key][1] + identity) % 2**64)
    return dict(total)


def _identity(record: Mapping[str, Any]) -> int:
    events = record["events"]
    times = np.array(events["time_unix_nano"])
    if record["kind"] == "log":
        return int(line_identity(times, events["body"]).sum())
    return int(value_identity(times, np.array(events["value"], float)).sum())


def _compare_table(findings: Findings, chain: Chain, table: Table, records: list[Record]) -> None:
    """Each record of the table's topics once, with its bytes; of a parsed table only its place and id."""
    content = ("key", "value") if table.parsed is None else ("id",)
    rows = Counter(
        (Place(row["topic"], row["partition"], row["offset"]), *(row[column] for column in content))
        for row in read_table(chain.settings.delta_of(table.name), ["topic", "partition", "offset", *content])
    )
    if table.parsed is None:
        expected = Counter((record.place, record.key, record.value) for record in records)
    else:
        ids = ((record.place, _parsed(record).get("id")) for record in records)
        expected = Counter((place, identity) for place, identity in ids if identity is not None)
    findings.multisets(f"delta: {table.name}", expected, rows)


def _compare_documents(findings: Findings, chain: Chain, log: Mapping[str, list[Record]]) -> None:
    """Elasticsearch holds the documents that the topics make, under their ids, and nothing else."""
    with connect(chain.settings.elasticsearch_url, chain.settings.elasticsearch_identity()) as client:
        for topic, kind in ((one.name, one.index) for one in chain.topics.indexed):
            expected = Batch(lifecycles=load_lifecycles())
            for r in log[topic]:
                if r.value is not None:
                    place = (topic, r.place.partition, r.place.offset, r.place.offset + 1)
                    expected.add(kind, Message(*place, r.timestamp_ms, r.key, r.value), r.value)
            found = dict(documents(client, index_of(kind, chain.settings.generation)))
            findings.mappings(f"elasticsearch: {kind}", {key: d for (_, key), d in expected.documents.items()}, found)
