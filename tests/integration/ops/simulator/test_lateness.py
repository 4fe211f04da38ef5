"""The truth judges by what a chain has decided, as soon as it has."""

from confluent_kafka import Producer

from infra.contract.lateness import Decision
from ops.simulator import lateness
from ops.simulator.lateness import DecidedLateness
from tests.integration.enrichment import own_map

LINES = "telemetry.lines"


def test_what_is_decided_while_it_runs_is_looked_up(servers, monkeypatch):
    monkeypatch.setattr(lateness, "LOOK_SECONDS", 0.0)
    with own_map(servers.bootstrap) as topics:
        decided, name = DecidedLateness(servers.bootstrap, topics), topics[LINES].name
        assert decided(name, 130_000) == 20_000
        producer, decision = Producer({"bootstrap.servers": servers.bootstrap}), Decision(130_000, 2_000)
        producer.produce(topics["lateness"].name, decision.value(), decision.key(), partition=0)
        assert producer.flush(30) == 0
        assert (decided(name, 129_999), decided(name, 130_000)) == (20_000, 2_000)


def test_without_the_topic_of_decisions_the_limit_of_the_map_holds(servers):
    with own_map(servers.bootstrap) as topics:
        absent = topics["lateness"].model_copy(update={"name": "nowhere.lateness"})
        without = type(topics)({**topics.topics, "lateness": absent})
        assert DecidedLateness(servers.bootstrap, without)(topics[LINES].name, 130_000) == 20_000
