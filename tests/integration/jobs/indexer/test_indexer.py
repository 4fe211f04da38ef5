"""The indexer against real servers: each document once, whatever is repeated, refused or killed."""

import base64
import itertools
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from typing import Any

import orjson
import pytest
from confluent_kafka import TopicPartition

from connectors.kafka import admin
from connectors.sinks.elasticsearch import Action, ElasticsearchSink
from connectors.sinks.elasticsearch_errors import Retry
from infra.contract.columnar import to_columns, to_rows
from infra.contract.indices import load_lifecycles
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.incidents.fold import fold
from jobs.indexer.index_names import index_of
from jobs.indexer.indexer import run
from jobs.indexer.indices import Indices
from jobs.indexer.settings import IndexerSettings
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.verify import readback
from tests.integration.jobs.indexer.conftest import SECOND, START, Chain, poll_until, window


def novelty(identity: str, phase: str, seconds: int, score: float, **fields: Any) -> dict[str, Any]:
    """One record of the life of a novelty on vm-1 that began at START."""
    return {
        "id": identity,
        "phase": phase,
        "verdict": "anomaly",
        "machine": "vm-1",
        "kind": "metric",
        "series": "load",
        "name": "load",
        "time_unix_nano": START + seconds * SECOND,
        "since_unix_nano": START,
        "score": score,
        "observed": score / 2,
        "text": f"load {phase}",
        **fields,
    }


def rejection(offset: int) -> dict[str, Any]:
    """A record that enrichment couldn't decode."""
    return {
        "id": f"telemetry.lines-0-{offset}-0-malformed",
        "code": "malformed",
        "reason": "could not be decoded",
        "source": {
            "topic": "telemetry.lines",
            "partition": 0,
            "offset": offset,
            "timestamp_unix_milli": 1_790_000_000_000,
        },
        "value": "eyJicm9rZW7/",
        "machine": "vm-1",
        "events": 1,
    }


def test_every_record_becomes_its_documents(chain: Chain):
    with chain.indexer():
        chain.send("statistics", window("vm-1", 0), {"watermark_unix_nano": START}, key="vm-1")
        chain.send("novelties", novelty("n1", "start", 0, 20.0), novelty("n1", "end", 60, 3.0))
        chain.send("events.rejected", rejection(7))
        poll_until(chain.settled, "all committed")

    documents = chain.documents("statistics")
    place = {"known": True, "type": "virtual", "site": "north", "hypervisor": "hv-1", "role": "amf"}
    milli = START // 1_000_000
    shared = {
        "@timestamp": milli + 10_000,
        "machine": "vm-1",
        **place,
        "window": {"kind": "tumbling", "size_seconds": 60.0, "start": milli - 50_000, "end": milli + 10_000},
    }
    load = {"series": "load", "name": "load", "kind": "metric", "count": 4, "sum": 2.0, "mean": 0.5}
    cpu = {"series": "cpu{state=idle}", "name": "cpu", "kind": "metric", "count": 4, "mean": 0.25}
    assert sorted(documents.values(), key=lambda document: document["series"]) == [
        shared | cpu | {"attributes": ["state=idle"]},
        shared | load,
    ]
    assert {len(identity) for identity in documents} == {32}
    assert chain.documents("novelties") == {
        "n1": {
            "@timestamp": milli,
            "machine": "vm-1",
            "series": "load",
            "name": "load",
            "kind": "metric",
            "score": 20.0,
            "observed": 10.0,
            "peaked": milli,
            "verdict": "anomaly",
            "phase": "end",
            "text": "load end",
            "started": milli,
            "alerted": milli,
            "updated": milli + 60_000,
            "ended": milli + 60_000,
        }
    }
    assert list(chain.documents("rejected").values()) == [
        {
            "id": "telemetry.lines-0-7-0-malformed",
            "@timestamp": 1_790_000_000_000,
            "code": "malformed",
            "reason": "could not be decoded",
            "machine": "vm-1",
            "events": 1,
            "source": {"topic": "telemetry.lines", "partition": 0, "offset": 7},
            "value": '{"broken\ufffd',
        }
    ]


def test_a_novelty_waits_for_few_of_the_statistics_before_it(chain: Chain):
    each = [{"series": f"{number}{'-' * 250}", "name": "load", "kind": "metric", "count": 4} for number in range(30)]
    many = [window(f"vm-{number}", 0) | {"statistics": to_columns(each)} for number in range(2_000)]
    chain.send("statistics", *many)  # 17 MB
    with chain.indexer():
        poll_until(lambda: chain.documents("statistics"), "statistics are being written")
        chain.send("novelties", novelty("n1", "start", 0, 20.0))
        poll_until(lambda: chain.documents("novelties"), "the novelty is there")
        assert chain.count("statistics") < len(many) * len(each) / 2


def test_a_repeated_run_gives_the_same_documents(chain: Chain):
    emitted = [
        novelty("n1", phase, at, score) for phase, at, score in (("start", 0, 9), ("update", 10, 30), ("end", 20, 2))
    ]
    with chain.indexer():
        chain.send("statistics", *(window("vm-1", number) for number in range(5)))
        chain.send("novelties", *emitted)
        poll_until(chain.settled, "all committed")
    before = {kind: chain.documents(kind) for kind in ("statistics", "novelties")}

    chain.forget_positions()
    with chain.indexer():
        poll_until(chain.settled, "all committed again")

    assert {kind: chain.documents(kind) for kind in ("statistics", "novelties")} == before
    assert len(before["statistics"]) == 10
    assert before["novelties"]["n1"]["score"] == 30
    assert before["novelties"]["n1"]["phase"] == "end"


def test_the_life_of_a_novelty_is_joined_over_batches(chain: Chain):
    with chain.indexer():
        chain.send("novelties", novelty("n1", "start", 0, 30.0))
        poll_until(lambda: chain.documents("novelties"), "the start")
        chain.send("novelties", novelty("n1", "end", 60, 2.0, verdict="state_change"))
        poll_until(lambda: chain.documents("novelties")["n1"]["phase"] == "end", "the end")
    document = chain.documents("novelties")["n1"]
    assert (document["verdict"], document["score"], document["observed"]) == ("state_change", 30.0, 15.0)
    assert document["ended"] - document["started"] == 60_000


def silence(machine: str, hypervisor: str, seconds: int) -> dict[str, Any]:
    """That a machine has been silent since START; of twelve machines four are on each hypervisor."""
    place = {"inventory": {"hypervisor": hypervisor}, "peers": {"machines": 12, "hypervisor": 4}}
    fields = {"machine": machine, "verdict": "silence", "kind": "machine", "text": f"{machine} is silent", **place}
    return novelty(f"{machine}-silent", "start", seconds, 30.0 - seconds) | fields


def test_an_incident_arrives_and_later_records_change_its_document(chain: Chain):
    placed = [(0, orjson.dumps(silence(f"vm-{n}", "hv-1", n))) for n in (1, 2, 3)]
    watermark = orjson.dumps({"watermark_unix_nano": START + 10 * SECOND})
    state, emitted = fold(None, [*placed, (0, watermark)], 1)
    assert [record["phase"] for record in emitted] == ["start", "update", "update"]
    with chain.indexer():
        for record in emitted:
            chain.send("incidents", record, key=record["id"])
        poll_until(chain.settled, "all committed")
        ((identity, early),) = chain.documents("incidents").items()
        assert [early[name] for name in ("phase", "machines", "novelties", "verdicts")] == ["update", 3, 3, ["silence"]]
        assert [early["causes"][0][name] for name in ("kind", "name", "affected", "machines")] == [
            "hypervisor",
            "hv-1",
            3,
            4,
        ]
        assert early["text"] == (
            "3 machines, likely because of hypervisor hv-1 (3 of its 4 machines); first: vm-1 is silent"
        )

        later = [
            (0, orjson.dumps(silence("vm-4", "hv-1", 20))),
            (0, orjson.dumps({"watermark_unix_nano": START + 10**12})),
        ]
        (update,) = fold(state, later, 1)[1]
        chain.send("incidents", update, emitted[0], key=identity)  # what is older and comes again changes nothing
        poll_until(chain.settled, "all committed")
    ((same, document),) = chain.documents("incidents").items()
    assert same == identity
    assert (document["machines"], document["updated"]) == (4, START // 1_000_000 + 20_000)
    assert (document["started"], document["alerted"]) == (early["started"], early["alerted"])
    assert (document["causes"][0]["name"], document["causes"][0]["affected"]) == ("hv-1", 4)
    assert [member["machine"] for member in document["members"]] == ["vm-1", "vm-2", "vm-3", "vm-4"]


def test_a_refused_document_is_rejected_and_the_rest_goes_on(chain: Chain):
    with chain.indexer():
        chain.send("statistics", window("vm-1", 0), window("vm-1", 1, severity_number=1000), window("vm-1", 2))
        chain.send("statistics", b"{broken", key="vm-2")
        chain.send("events.rejected", b"[]", key="x")
        poll_until(chain.settled, "all committed")

    written = sorted(
        (document["series"], document["window"]["end"]) for document in chain.documents("statistics").values()
    )
    ends = [START // 1_000_000 + 10_000 * number for number in (1, 2, 3)]
    assert written == [("cpu{state=idle}", end) for end in ends] + [("load", ends[0]), ("load", ends[2])]

    rejected = {record["code"]: record for record in chain.records("events.rejected") if record}
    refused, unreadable = rejected["elasticsearch_refused"], rejected["unreadable_record"]
    assert "severity_number" in refused["reason"] and "out of range" in refused["reason"]
    assert orjson.loads(base64.b64decode(refused["value"])) == window("vm-1", 1, severity_number=1000)
    assert (refused["machine"], refused["events"], refused["source"]["offset"]) == ("vm-1", 1, 1)
    assert base64.b64decode(unreadable["value"]) == b"{broken"
    assert unreadable["machine"] == "vm-2"
    stored = {document["id"]: document for document in chain.documents("rejected").values()}
    assert {record["id"] for record in rejected.values()} == stored.keys()
    assert {document["stage"] for document in stored.values()} == {"indexer"}


def test_what_can_not_be_indexed_is_a_dead_letter_and_nothing_stops(chain: Chain):
    long_name = "h" * 600
    broken = {
        "a wrong type": window("vm-3", 0, mean="high"),
        "no JSON": b"\xff\xfe{",
        "nested deeply": b"[" * 200_000,
        "10 MB": b'{"id":"' + b"x" * 9_000_000 + b'"}',
        "too large a number": window("vm-3", 1) | {"window": {"start_unix_nano": 0, "end_unix_nano": 2**64 - 1}},
    }
    immense = "\U0001f600" * 10_000
    with chain.indexer() as indexer:
        chain.send("statistics", window("vm-1", 0), window(long_name, 0), key="vm-1")
        for record in broken.values():
            chain.send("statistics", record, key="vm-1")
        chain.send("statistics", window("vm-1", 1), key="vm-1")
        chain.send("novelties", novelty("n1", "start", 0, 9.0, series=immense, text="t" * 9_000_000), key="vm-1")
        chain.send("novelties", novelty("n" * 600, "start", 0, 9.0), novelty("n2", "start", 0, 9.0), key="vm-1")
        chain.send("incidents", b"null", b'{"id":"i","members":[1]}', key="i")
        poll_until(chain.settled, "all committed")
        assert indexer.running()

    machines = [document["machine"] for document in chain.documents("statistics").values()]
    assert sorted(machines) == [long_name] * 2 + ["vm-1"] * 4
    novelties = chain.documents("novelties")
    assert novelties.keys() == {"n1", "n2"}
    assert novelties["n1"]["series"] == immense[:8191]
    assert len(novelties["n1"]["text"]) == 8191
    rejected = chain.records("events.rejected")
    assert {(record["stage"], record["code"]) for record in rejected} == {("indexer", "unreadable_record")}
    assert Counter(record["source"]["topic"].split(".")[0] for record in rejected) == {
        "statistics": len(broken),
        "novelties": 1,
        "incidents": 2,
    }
    kept = {base64.b64decode(record["value"])[:500_000] for record in rejected}
    assert {record[:500_000] for record in broken.values() if isinstance(record, bytes)} <= kept
    assert len(chain.documents("rejected")) == len(rejected)


def test_a_request_that_is_refused_as_a_whole_costs_only_the_document_at_fault(chain: Chain):
    retry = Retry(lambda seconds, _: time.sleep(seconds))
    sink = ElasticsearchSink(chain.elasticsearch, retry)
    indices = Indices(chain.elasticsearch, retry, load_lifecycles(), chain.generation)
    indices.prepare({"statistics"})
    (index,) = indices.places("statistics", {"@timestamp": START // 1_000_000})
    names = [*(f"d{number}" for number in range(50)), "i" * 600, *(f"d{number}" for number in range(50, 100))]
    refused = sink.write([Action(index, name, {"machine": "vm-1"}) for name in names])
    assert list(refused) == [50]
    assert "512" in refused[50]
    assert chain.documents("statistics").keys() == {name for name in names if len(name) < 600}


def test_records_that_were_deleted_before_they_were_indexed_stop_the_indexer_with_their_count(chain: Chain):
    topic = chain.topics["statistics"].name
    with chain.indexer():
        chain.send("statistics", *(window("vm-1", n) for n in range(3)))
        poll_until(chain.settled, "the first ones")
    chain.send("statistics", *(window("vm-1", n) for n in range(3, 10)))
    (partition,) = [place for place in chain.ends(topic) if place.offset == 10]
    client = admin.connect(chain.settings.kafka_bootstrap)
    for future in client.delete_records([TopicPartition(topic, partition.partition, 8)]).values():
        future.result()
    before = chain.lags()
    gap = rf"5 records were deleted .*{topic}-{partition.partition} offsets 3 to 7 are gone.*KAPPA_INDEXER_LOST=skip"
    with pytest.raises(UserError, match=gap), chain.indexer() as indexer:
        poll_until(indexer.done, "it has ended")
    assert chain.lags() == before, "nothing is committed"

    chain.own = IndexerSettings(lost="skip")
    with chain.indexer() as indexer:
        poll_until(chain.settled, "what is left")
        assert indexer.running()

    loads = [document for document in chain.documents("statistics").values() if document["series"] == "load"]
    ends = {document["window"]["end"] for document in loads}
    assert ends == {START // 1_000_000 + 10_000 * (n + 1) for n in (0, 1, 2, 8, 9)}
    (letter,) = chain.records("events.rejected")
    assert (letter["code"], letter["stage"], letter["events"]) == ("lost_records", "indexer", 5)
    assert letter["source"] | {"timestamp_unix_milli": 0} == {
        "topic": topic,
        "partition": partition.partition,
        "offset": 3,
        "last_offset": 7,
        "timestamp_unix_milli": 0,
    }


def test_kill_9_neither_loses_nor_doubles(chain: Chain):
    moments = random.Random(7)
    for part in range(5):
        with chain.process() as indexer:
            before = sum(chain.lags())
            numbers = range(part * 100, part * 100 + 100)
            chain.send("statistics", *(window("vm-1", n, severity_number=1000 if n % 10 == 0 else 9) for n in numbers))
            poll_until(lambda: sum(chain.lags()) < before + 100, "some progress")  # noqa: B023
            indexer.join(moments.uniform(0, 0.3))
    with chain.indexer():
        poll_until(chain.settled, "all committed")

    loads = [document for document in chain.documents("statistics").values() if document["series"] == "load"]
    assert sorted(document["window"]["end"] for document in loads) == [
        START // 1_000_000 + 10_000 * (n + 1) for n in range(500) if n % 10
    ]
    rejected = [orjson.loads(base64.b64decode(record["value"]))["id"] for record in chain.records("events.rejected")]
    assert sorted(rejected) == sorted(f"vm-1-{n}" for n in range(0, 500, 10))


def test_sigterm_ends_the_job_in_order(chain: Chain):
    admin.apply(admin.connect(chain.settings.kafka_bootstrap), chain.topics)
    command = [sys.executable, "-m", "ops.cli", "run", "indexer"]
    process = subprocess.Popen(command, env=os.environ | chain.environment, stderr=subprocess.PIPE)
    try:
        chain.send("statistics", *(window("vm-1", number) for number in range(50)))
        poll_until(chain.settled, "all committed")
        process.terminate()
        assert process.wait(20) == 0, process.stderr.read()
    finally:
        process.kill()
        process.communicate()
    assert len(chain.documents("statistics")) == 100


def test_a_second_copy_fences_the_first(chain: Chain):
    with pytest.raises(UserError, match="took over"), chain.indexer() as first:
        numbers = itertools.count()
        chain.send("statistics", window(f"vm-{next(numbers)}", 0, severity_number=1000))
        poll_until(chain.settled, "the first works")
        with chain.process():

            def ended() -> bool:
                chain.send("statistics", *(window(f"vm-{next(numbers)}", 0, severity_number=1000) for _ in range(8)))
                return first.done()

            poll_until(ended, "the first has ended")
            poll_until(chain.settled, "the second has all")
    expected = sorted(f"vm-{number}" for number in range(next(numbers)))
    assert sorted(document["machine"] for document in chain.documents("statistics").values()) == expected
    assert sorted(record["machine"] for record in chain.records("events.rejected")) == expected


def test_a_missing_topic_is_named(servers):
    settings = Settings(kafka_bootstrap=servers.bootstrap, generation="idx-test-absent")
    with pytest.raises(UserError, match=r"statistics\.idx-test-absent.*kappa topics apply"):
        run(settings, IndexerSettings(), JOBS.topics_in(load_topics(), settings.generation), threading.Event())


def test_an_index_with_other_types_is_named(chain: Chain):
    index = index_of("statistics", chain.generation)
    other = {"properties": {"count": {"type": "keyword"}}}
    chain.elasticsearch.indices.put_index_template(
        name="idx-test-other", index_patterns=[f"{index}.*"], priority=1, template={"mappings": other}
    )
    with pytest.raises(UserError, match=rf"{index}.*count.*generation"):
        run(chain.settings, chain.own, chain.topics, threading.Event())


def test_what_was_indexed_can_be_read_back(chain: Chain):
    records = [window("vm-1", number) for number in range(1_100)]  # more than one page
    sightings = readback.Sightings(chain.elasticsearch, index_of("novelties", chain.generation))
    assert sightings.look() == {}
    with chain.indexer():
        chain.send("statistics", *records)
        chain.send("novelties", novelty("n1", "start", 0, 20.0))
        poll_until(chain.settled, "all committed")
        before = time.time()
        assert sightings.look()["n1"]["score"] == 20.0
        assert sightings.look() == {}
        assert before <= sightings.seen["n1"] <= time.time()

    found = list(readback.statistics(chain.elasticsearch, index_of("statistics", chain.generation)))
    figures = {
        (one["window"]["start_unix_nano"], statistic["series"], statistic["count"], statistic["mean"])
        for one in found
        for statistic in to_rows(one["statistics"])
    }
    assert len(found) == len(figures)
    assert figures == {
        (record["window"]["start_unix_nano"], statistic["series"], statistic["count"], statistic["mean"])
        for record in records
        for statistic in to_rows(record["statistics"])
    }
