"""Control events: how `kappa detector` writes and reads the topic `detector.control`."""

from typing import Any

import orjson
from confluent_kafka import Producer

from connectors.reader import read_records
from infra.errors import UserError
from infra.kafka import client_config
from infra.topics import Topic
from jobs.detector.novelties import Novelty
from jobs.detector.rules import Rule

TOPIC = "detector.control"
Control = dict[str, Any]
_ABOUT = ("verdict", "kind", "series", "observed", "expected")


def feedback(bootstrap: str, topic: str, novelty_id: str) -> Control:
    """That this novelty of the topic `novelties` is none, as of its strongest moment.

    Raises UserError if the topic doesn't hold it.
    """
    told = [record for _, record in read_records(bootstrap, topic) if record.get("id") == novelty_id]
    if not told:
        raise UserError(f"NOVELTY {novelty_id!r}: {topic} holds none of this id; it is the `_id` in Elasticsearch")
    return not_anomalous(max(told, key=lambda record: record["score"]))


def not_anomalous(novelty: Novelty) -> Control:
    about = {name: novelty[name] for name in _ABOUT if name in novelty}
    return {"action": "feedback", "machine": novelty["machine"], "novelty": novelty["id"], **about}


def reset(series: str, machine: str) -> Control:
    """That these series begin anew; both are globs."""
    return {"action": "reset", "machine": machine, "series": series}


def suppress(rule: Rule) -> Control:
    return {"action": "suppress", "rule": rule.id, **rule.model_dump(exclude_none=True)}


def allow(rule_id: str) -> Control:
    return {"action": "allow", "machine": "*", "rule": rule_id}


def rules(bootstrap: str, topic: str) -> dict[str, Rule]:
    """The rules that hold now, by id, in the order in which they were made."""
    found: dict[str, Rule] = {}
    for _, control in read_records(bootstrap, topic):
        if control["action"] == "suppress":
            found[control["rule"]] = Rule.of(control)
        elif control["action"] == "allow":
            found.pop(control["rule"], None)
    return found


def send(bootstrap: str, topic: Topic, control: Control) -> None:
    """Write a control event where its machines are: it is on the broker when this returns.

    Raises UserError if it can't be written.
    """
    # The sink's partitioner: a machine's control events lie in the partition of its events.
    producer = Producer(client_config(bootstrap, **{"enable.idempotence": True, "partitioner": "murmur2_random"}))
    failures: list[str] = []

    def delivered(error: object, _: object) -> None:
        if error:
            failures.append(str(error))

    value, machine = orjson.dumps(control), control["machine"]
    if is_pattern(machine):
        for partition in range(topic.partitions):
            producer.produce(topic.name, value, machine, partition, on_delivery=delivered)
    else:
        producer.produce(topic.name, value, machine, on_delivery=delivered)
    if producer.flush(30) or failures:
        raise UserError(f"topic {topic.name!r}: can't be written ({failures or 'no answer'}); run `kappa topics apply`")


def is_pattern(machine: str) -> bool:
    """Whether this is a glob, not a machine's name."""
    return any(mark in machine for mark in "*?[")
