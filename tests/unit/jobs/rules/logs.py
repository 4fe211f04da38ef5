"""Records of `events` for the tests of rules, and what the fold makes of them."""

from functools import partial

import orjson
from jsonschema import Draft202012Validator

from infra.contract.columnar import event_columns
from infra.contract.json_schema import json_schema
from infra.contract.schemas import ALERTS
from jobs.rules.absence import Absence
from jobs.rules.change import Change
from jobs.rules.job import RulesShard
from jobs.rules.rule import SECOND
from jobs.rules.sequence import EventSequence
from jobs.runtime.shard_state import Input
from tests.unit.jobs.folds import data, fed

SCHEMA = Draft202012Validator(json_schema("alerts", ALERTS))
INVENTORY = {"known": True, "type": "virtual", "site": "lund", "role": "upf"}
DAY = 86_400 * SECOND
TTL = 7 * DAY


def change(**fields):
    declared = {"id": "hot", "name": "Hot", "kind": "change", "series": "temperature*", "by": 20, "within": "1m"}
    return Change.model_validate(declared | fields)


def sequence(**fields):
    declared = {"id": "then", "name": "A then B", "kind": "sequence", "within": "30s"}
    return EventSequence.model_validate(declared | {"first": {"log": "^A"}, "then": {"log": "^B"}} | fields)


def absence(**fields):
    return Absence.model_validate({"id": "gone", "name": "Gone", "kind": "absence", "for": "5m"} | fields)


def watermark(seconds):
    return orjson.dumps({"watermark_unix_nano": round(seconds * SECOND)})


def point(seconds, value, series="temperature{sensor=cpu}", name="temperature"):
    fields = {"series": series, "name": name, "value": value}
    return {"time_unix_nano": round(seconds * SECOND), **{key: one for key, one in fields.items() if one is not None}}


def line(seconds, body, severity=9, template=None):
    fields = {"body": body, "template": template or body, "series": template or body, "severity_number": severity}
    return {"time_unix_nano": round(seconds * SECOND), **fields}


def record(*events, machine="vm-1", inventory=None, **more):
    kind = "log" if "body" in events[0] else "metric"
    facts = {"id": "otlp-0-1-0", "machine": machine, "kind": kind, "inventory": inventory or INVENTORY}
    return orjson.dumps({**facts, **more, "events": event_columns(events)})


def log_of(values):
    return Input("events", 3, range(len(values)), values)


def opener(*rules, ttl=TTL):
    return partial(RulesShard, rules, ttl)


def alerts(rules, *values, ttl=TTL):
    """The records of `alerts`, each as its schema says."""
    found = [orjson.loads(output.value) for output in data(fed(opener(*rules, ttl=ttl), log_of(values))[1])]
    for alert in found:
        SCHEMA.validate(alert)
    return found


def shown(found):
    """Of each alert: machine, phase, seconds, and since when."""
    return [(a["machine"], a["phase"], a["time_unix_nano"] / SECOND, a["since_unix_nano"] / SECOND) for a in found]
