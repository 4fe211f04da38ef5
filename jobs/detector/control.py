"""Control events: how `kappa detector` writes and reads the topic `detector.control`."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import orjson

from connectors.kafka.producer import BY_KEY, write_now
from connectors.kafka.reader import read_records, read_topic
from infra.contract.dead_letters import InvalidRecordError
from infra.contract.offsets import Partition
from infra.contract.topics import Topic
from infra.errors import UserError
from jobs.detector.intake import check_control
from jobs.detector.rules import Rule, is_pattern

if TYPE_CHECKING:
    from jobs.detector.novelties import Novelty

TOPIC = "detector.control"
Control = dict[str, Any]
_ABOUT = ("verdict", "kind", "series", "observed", "expected")


def feedback(bootstrap: str, topic: str, novelty_id: str, begin: Mapping[Partition, int] | None = None) -> Control:
    """That this novelty of the topic `novelties` is none, as of its strongest moment; with its newest record.

    It is looked for from the offsets `begin` on, by default in the whole topic.

    Raises UserError if it isn't there.
    """
    found = read_records(bootstrap, topic, begin=begin)
    records = [record for _, record in found if record.get("id") == novelty_id and "score" in record]
    if not records:
        raise UserError(f"NOVELTY {novelty_id!r}: {topic} holds none of this id; it is the `_id` in Elasticsearch")
    return not_anomalous(max(records, key=lambda record: record["score"]), records[-1])


def not_anomalous(novelty: "Novelty", newest: "Novelty | None" = None) -> Control:
    """An operator says that a novelty is none.

    `newest` is its last record, which the detector doesn't keep once it has ended; by default the same.
    """
    about = {name: novelty[name] for name in _ABOUT if name in novelty}
    record = orjson.dumps(newest or novelty).decode()
    return {
        "action": "feedback",
        "machine": novelty["machine"],
        "novelty": novelty["id"],
        **about,
        "novelty_record": record,
    }


def reset(series: str, machine: str) -> Control:
    """These series are learned anew; both are globs."""
    return {"action": "reset", "machine": machine, "series": series}


def retire(machine: str, valid_to: int) -> Control:
    """The inventory says that a machine is there until `valid_to`, unix ns."""
    return {"action": "retire", "machine": machine, "valid_to_unix_nano": valid_to}


def suppress(rule: Rule) -> Control:
    """Novelties that the rule matches are suppressed."""
    return {"action": "suppress", "rule": rule.id, **rule.model_dump(exclude_none=True)}


def allow(rule_id: str) -> Control:
    """A rule holds no longer."""
    return {"action": "allow", "machine": "*", "rule": rule_id}


def rules(bootstrap: str, topic: str) -> dict[str, Rule]:
    """The rules that hold now, by id, in the order in which they were made."""
    found: dict[str, Rule] = {}
    for _, control in read_records(bootstrap, topic):
        try:
            check_control(control)
        except InvalidRecordError:
            continue  # the detector has made a dead letter of it
        if control["action"] == "suppress":
            found[control["rule"]] = Rule.of(control)
        elif control["action"] == "allow":
            found.pop(control["rule"], None)
    return found


def history(bootstrap: str, topic: str) -> list[Control]:
    """What was said, each once, in the order of `time`: when its record was written, in ms since the epoch.

    What concerns many machines is in each partition: the n-th time that one says it is the n-th time of the others.
    """
    times: Counter[tuple[int | None, bytes]] = Counter()
    said: dict[tuple[bytes, int], Control] = {}
    for message in read_topic(bootstrap, topic):
        value = message.value() or b"null"
        try:
            control = orjson.loads(value)
            check_control(control)
        except (orjson.JSONDecodeError, InvalidRecordError):
            continue  # the detector has made a dead letter of it
        times[message.partition(), value] += 1
        said.setdefault((value, times[message.partition(), value]), {**control, "time": message.timestamp()[1]})
    return sorted(said.values(), key=lambda control: control["time"])


def send(bootstrap: str, topic: Topic, control: Control, by: str) -> None:
    """Write what the person `by` says where its machines are: it is on the broker when this returns.

    Raises UserError if it can't be obeyed, or can't be written.
    """
    control = {**control, "by": by}
    try:
        check_control(control)
    except InvalidRecordError as error:
        raise UserError(error.reason) from None
    machine = control["machine"]
    partitions = range(topic.partitions) if is_pattern(machine) else (BY_KEY,)
    write_now(bootstrap, topic.name, machine, orjson.dumps(control), partitions)
