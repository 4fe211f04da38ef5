"""What is sent: each case is some records that are too long, too many, too deep, at a wrong time, or damaged.

A case has machines of its own, so that what became of it can be counted, and its neighbours be compared.
"""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import orjson

from tests.fuzz.inputs import mutate
from tests.hostile.formats import LINES, MANY, WRITERS, Sample

LONG, HUGE = 600, 100_000
MEGABYTES = 9_500_000
MUTATED = 25_000  # of each internal topic
Seeds = Mapping[str, Sequence[bytes]]  # by key of the topic: good records that a mutation starts from


@dataclass(frozen=True)
class Poison:
    """A record to write; its Kafka timestamp is that of the moment at which it is sent, and `shift_ms` later."""

    key: bytes
    value: bytes
    shift_ms: int = 0


@dataclass(frozen=True)
class Case:
    """Some records for a topic.

    Attributes:
        name: unique among the cases.
        topic: the topic's key in the map.
        wire_format: of a telemetry topic.
        make: gives the records; their event time is the moment (unix ns) at which they are sent.
        events: how many data points or log lines they hold; None where damage leaves that open.
        times: how often the case is sent again, evenly over the feed.
    """

    name: str
    topic: str
    make: Callable[[int], Iterator[Poison]]
    events: int | None = None
    wire_format: str | None = None
    times: int = 3


def cases(topic_of: Mapping[str, str], seeds: Seeds) -> list[Case]:
    """All cases; `topic_of` gives the key of the topic of each wire format."""
    return [
        *_limits(topic_of),
        *_damaged(topic_of),
        *_clocks(topic_of["lines_json"]),
        *_controls(topic_of["control_json"]),
        *(_mutated(topic, records) for topic, records in seeds.items()),
    ]


# Each format x each limit


def _limits(topic_of: Mapping[str, str]) -> Iterator[Case]:
    many_attributes = {f"a{number}": "b" for number in range(5_000)}
    for wire_format in WRITERS:
        for limit, change in {
            "machine's name": {"machine": "m" * LONG},
            "series' name": {"name": "n" * HUGE},
            "unit": {"unit": "u" * HUGE},
            "attribute": {"attributes": {"a": "b" * HUGE}},
            "number of attributes": {"attributes": many_attributes},
            **_large(wire_format),
        }.items():
            yield _too_long(wire_format, topic_of[wire_format], limit, change)
        if wire_format in MANY:
            yield _too_long(wire_format, topic_of[wire_format], "number of series", {"series": 15_000})


def _large(wire_format: str) -> dict[str, dict]:
    """What makes a record large: a log line, or the name of a data point's series."""
    if wire_format not in LINES:
        return {"record": {"name": "n" * MEGABYTES}}
    return {"log line": {"body": "word " * (HUGE // 5)}, "record": {"body": "b" * MEGABYTES}}


def _too_long(wire_format: str, topic: str, limit: str, change: dict) -> Case:
    name = f"{wire_format}: {limit}"

    def make(moment: int) -> Iterator[Poison]:
        machine = _machine(name)
        sample = Sample(**{"machine": machine, "time_unix_nano": moment, **_longer(change, machine)})
        yield Poison(machine.encode(), WRITERS[wire_format](sample))

    return Case(name, topic, make, change.get("series", 1), wire_format)


def _longer(change: dict, machine: str) -> dict:
    """A machine's name that is too long is still this case's own."""
    return {**change, "machine": machine + change["machine"]} if "machine" in change else change


# Damage


def _damaged(topic_of: Mapping[str, str]) -> Iterator[Case]:
    for wire_format in WRITERS:
        for name, value in {
            "no text": bytes(range(128, 256)) * 100,
            "too deep": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
            "control characters": b"\x00\x01\x02\x1b[2J" * 100,
        }.items():
            yield _fixed(f"{wire_format}: {name}", topic_of[wire_format], value, wire_format)


def _fixed(name: str, topic: str, value: bytes, wire_format: str | None = None) -> Case:
    return Case(name, topic, lambda moment: iter([Poison(name.encode(), value)]), None, wire_format)


# Clocks


def _clocks(topic: str) -> Iterator[Case]:
    """A broker's clock that is wrong gives wrong Kafka timestamps; a machine's, wrong times of events."""
    minute, year = 60_000, 365 * 86_400_000
    for name, shift in {"a minute fast": minute, "a minute slow": -minute, "a year slow": -year}.items():
        yield _clock(f"broker's clock: {name}", topic, shift, 0)
    for name, shift in {"a minute fast": minute, "an hour slow": -60 * minute, "at the epoch": -year * 50}.items():
        yield _clock(f"machine's clock: {name}", topic, 0, shift)


def _clock(name: str, topic: str, broker_ms: int, machine_ms: int) -> Case:
    def make(moment: int) -> Iterator[Poison]:
        sample = Sample(_machine(name), moment + machine_ms * 1_000_000)
        yield Poison(sample.machine.encode(), WRITERS["lines_json"](sample), broker_ms)

    return Case(name, topic, make, 1, "lines_json", times=20)


# What operators say


def _controls(topic: str) -> Iterator[Case]:
    about = {"action": "feedback", "machine": "vm-01", "novelty": "n"}
    for name, control in {
        "feedback without a verdict": about,
        "feedback without a novelty": {"action": "feedback", "machine": "vm-01"},
        "feedback of an unknown verdict": {**about, "verdict": "odd", "kind": "metric", "observed": 1, "expected": 1},
        "feedback of text for numbers": {**about, "verdict": "anomaly", "kind": "metric", "observed": "high"},
        "feedback whose record is no JSON": {**about, "verdict": "silence", "observed": 1.0, "novelty_record": "{"},
        "feedback whose record is a list": {**about, "verdict": "silence", "observed": 1.0, "novelty_record": "[1]"},
        "suppress without a rule": {"action": "suppress", "machine": "*"},
        "suppress of a negative size": {"action": "suppress", "machine": "*", "rule": "r", "size": -1.0},
        "suppress of an unknown direction": {"action": "suppress", "machine": "*", "rule": "r", "direction": "left"},
        "reset without series": {"action": "reset", "machine": "vm-01"},
        "an unknown action": {"action": "explode", "machine": "vm-01"},
        "a machine that is a number": {"action": "reset", "machine": 7, "series": "*"},
    }.items():
        yield _fixed(f"control: {name}", topic, orjson.dumps(control))


# Internal topics, for who may write them


def _mutated(topic: str, records: Sequence[bytes]) -> Case:
    """Good records of other machines, damaged at random places; the same ones in each run."""
    rng = random.Random(topic)

    def make(moment: int) -> Iterator[Poison]:
        for _ in range(MUTATED // 50):
            yield Poison(_machine(topic).encode(), mutate(rng.choice(records), rng))

    return Case(f"mutated records of {topic}", topic, make, times=50)


def _machine(case: str) -> str:
    """The machine of a case: no neighbour's name."""
    return "poison-" + "".join(letter if letter.isalnum() else "-" for letter in case)
