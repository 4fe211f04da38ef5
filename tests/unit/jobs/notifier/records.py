"""Records of the three topics, routes, and the deliveries that they make."""

from typing import Any

import orjson

from infra.contract.dead_letters import Source
from jobs.notifier.deliveries import Deliveries
from jobs.notifier.delivery import Delivery
from jobs.notifier.notice import Notice, Places, Topic, read_notice
from jobs.notifier.routes import Routing

SECOND = 10**9
START = 1_727_100_800 * SECOND  # Monday, 2024-09-23, 14:13:20 UTC: before any clock
SOURCE = Source("incidents", 0, 7, START // 10**6)
PLACES: dict[str, Places] = {
    "vm-1": {"site": "lund", "hypervisor": "hv-1", "tenant": "a", "role": "upf"},
    "vm-2": {"site": "kista", "hypervisor": "hv-2", "tenant": "b", "role": "amf"},
}
CHANNELS: dict[str, Any] = {
    "mail": {"kind": "mail", "host": "smtp.example.net", "from": "kappa@example.net", "to": ["ops@example.net"]},
    "pager": {"kind": "webhook", "url": "https://pager.example.net/events"},
}


def incident(
    name: str = "i1", phase: str = "start", second: int = 0, machines: int = 1, **fields: Any
) -> dict[str, Any]:
    """A record of `incidents`: vm-1, vm-2 and so on, each with one novelty."""
    members = [
        {"novelty": f"n{n}", "machine": f"vm-{n}", "verdict": "anomaly", "since_unix_nano": START, "score": 30.0}
        for n in range(1, machines + 1)
    ]
    return {
        "id": name,
        "phase": phase,
        "time_unix_nano": START + second * SECOND,
        "since_unix_nano": START,
        "machines": machines,
        "novelties": machines,
        "verdicts": ["anomaly"],
        "score": 30.0,
        "causes": [{"kind": "hypervisor", "name": "hv-1", "likelihood": 3.0, "affected": machines, "machines": 4}],
        "members": members,
        "text": "cpu on vm-1 is 0.9; expected 0.1 to 0.3",
        **fields,
    }


def alert(name: str = "a1", phase: str = "start", second: int = 0, **fields: Any) -> dict[str, Any]:
    """A record of `alerts`, about vm-2."""
    return {
        "id": name,
        "phase": phase,
        "rule": "hot",
        "name": "Too hot",
        "severity": "critical",
        "machine": "vm-2",
        "inventory": {"known": True, "site": "kista", "role": None},
        "time_unix_nano": START + second * SECOND,
        "since_unix_nano": START,
        "observed": [],
        "text": "vm-2 is at 80 degrees",
        **fields,
    }


def novelty(name: str = "n1", phase: str = "start", second: int = 0, **fields: Any) -> dict[str, Any]:
    """A record of `novelties`, about vm-1."""
    return {
        "id": name,
        "phase": phase,
        "verdict": "anomaly",
        "machine": "vm-1",
        "inventory": {"known": True, **PLACES["vm-1"]},
        "series": "cpu",
        "unit": "1",
        "kind": "metric",
        "time_unix_nano": START + second * SECOND,
        "since_unix_nano": START,
        "score": 30.0,
        "observed": 0.9,
        "expected_low": 0.1,
        "expected_high": 0.3,
        "text": "cpu on vm-1 is 0.9; expected 0.1 to 0.3",
        **fields,
    }


def notice(record: dict[str, Any], topic: Topic = "incidents", critical_machines: int = 3) -> Notice:
    return read_notice(topic, orjson.dumps(record), lambda machine: PLACES.get(machine, {}), critical_machines)


def routing(*routes: dict[str, Any], **fields: Any) -> Routing:
    """With the channels `mail` and `pager`; a route goes to `mail` if it doesn't say otherwise."""
    named = [{"name": f"r{n}", "channels": ["mail"], **route} for n, route in enumerate(routes)]
    return Routing.model_validate({"channels": CHANNELS, "routes": named, **fields})


def planned(routing: Routing, *notices: Notice, known: Deliveries | None = None) -> list[Delivery]:
    """The deliveries of notices that come one after the other."""
    known, found = known or Deliveries(), []
    for one in notices:
        for delivery in list(routing.plan(one, SOURCE, known)):
            known.apply(delivery)
            found.append(delivery)
    return found


def delivery(record: dict[str, Any] | None = None, topic: Topic = "incidents", channel: str = "mail") -> Delivery:
    """The one delivery that a record alone makes for a channel."""
    (one,) = planned(routing({"topics": [topic], "channels": [channel]}), notice(record or incident(), topic))
    return one
