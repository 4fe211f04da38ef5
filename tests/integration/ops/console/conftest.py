"""A console over a real broker and a real Elasticsearch, with documents and records of each kind."""

import pytest
from confluent_kafka import Producer

from connectors.kafka.admin import apply, connect
from connectors.sinks.elasticsearch import Action, ElasticsearchSink
from connectors.sinks.elasticsearch import connect as connect_elasticsearch
from connectors.sinks.elasticsearch_errors import Retry
from infra.contract.indices import Lifecycle, Lifecycles
from infra.contract.topics import load_topics
from jobs.detector import control
from jobs.indexer.index_names import index_of
from jobs.indexer.indices import Indices
from jobs.runtime.settings import Settings
from ops.console.server import application
from ops.console.settings import ConsoleSettings
from ops.console.sources import Sources
from ops.console.writes import Writes

GENERATION = "console-test"
BEGAN = 1_790_000_000_000
MINUTE = 60_000
EVER = Lifecycle(period="1h", retention="365d", documents=100, bytes="1GB")
OWN = ConsoleSettings(patience_seconds=30)


def novelty(machine, minute, score, verdict="anomaly", **more):
    at = BEGAN + minute * MINUTE
    facts = {"machine": machine, "site": "north", "role": "amf", "verdict": verdict, "score": score, "text": "so"}
    return facts | {"@timestamp": at, "started": at, "updated": at, "phase": "start"} | more


DOCUMENTS = {
    "novelties": {
        "n1": novelty("vm-1", 0, 8.0, ended=BEGAN + MINUTE, observed=97.0, expected_low=1.0, expected_high=2.0),
        "n2": novelty("vm-2", 30, 40.0, "silence", hypervisor="hv-1"),
        "n3": novelty("vm-1", 59, 9.0, "state_change", site="south", hypervisor="hv-1"),
    },
    "incidents": {
        "i1": {
            "@timestamp": BEGAN,
            "started": BEGAN,
            "machines": 1,
            "novelties": 1,
            "verdicts": ["anomaly"],
            "score": 8.0,
            "causes": [{"kind": "machine", "name": "vm-1", "likelihood": 1.5, "affected": 1, "machines": 1}],
            "members": [{"novelty": "n1", "machine": "vm-1", "verdict": "anomaly", "since": BEGAN, "score": 8.0}],
            "text": "vm-1 is odd",
        }
    },
    "rejected": {
        "d1": {
            "@timestamp": BEGAN,
            "id": "telemetry.lines-0-0-0-not_json",
            "stage": "enrichment",
            "code": "not_json",
            "reason": "no JSON",
            "events": 1,
            "source": {"topic": "telemetry.lines", "partition": 0, "offset": 0},
        }
    },
    "statistics": {
        f"s{minute}-{size}": {
            "@timestamp": BEGAN + minute * MINUTE,
            "machine": "vm-1",
            "role": "amf",
            "window": {"kind": "tumbling", "size_seconds": size, "end": BEGAN + minute * MINUTE},
            "series": "cpu",
            "kind": "metric",
            "unit": "%",
            "count": 6,
            "mean": minute + size,
            "min": float(minute),
            "max": 100.0,
        }
        for minute in (0, 30)
        for size in (10.0, 60.0)
    },
}


@pytest.fixture(scope="session")
def console(servers):
    """The application, of the person ada; no job answers."""
    settings = Settings(
        kafka_bootstrap=servers.bootstrap, elasticsearch_url=servers.elasticsearch_url, metrics_port=65_000
    )
    apply(connect(servers.bootstrap), load_topics())
    topic = load_topics()[control.TOPIC]
    control.send(servers.bootstrap, topic, control.reset("cpu*", "vm-*"), "ada")
    control.send(servers.bootstrap, topic, control.reset("cpu", "vm-2"), "bob")
    producer = Producer({"bootstrap.servers": servers.bootstrap})
    producer.produce("telemetry.lines", b"\xffno JSON", partition=0)
    assert producer.flush(30) == 0
    write_documents(servers.elasticsearch_url, DOCUMENTS)
    sources = Sources(settings, OWN)
    return application(sources, OWN, Writes(sources), "ada")


def write_documents(url, documents_of):
    """Index documents by kind and id, as the indexer does; they are visible when this returns."""
    client = connect_elasticsearch(url)
    retry = Retry(lambda *_: None)
    sink = ElasticsearchSink(client, retry)
    indices = Indices(client, retry, Lifecycles(dict.fromkeys(DOCUMENTS, (EVER,))), GENERATION)
    indices.prepare({*documents_of})
    for kind, documents in documents_of.items():
        actions = [Action(indices.places(kind, one)[-1], name, one) for name, one in documents.items()]
        assert sink.write(actions) == {}
        client.indices.refresh(index=index_of(kind, GENERATION))
        client.indices.put_alias(index=f"{index_of(kind, GENERATION)}.*", name=f"kappa-{kind}")
