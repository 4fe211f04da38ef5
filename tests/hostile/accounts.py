"""What became of a case's records: events, late events, dead letters; and what the chain says of the neighbours."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from tests.chaos.reading import Place, Record

NEIGHBOURS = ("vm-", "hv-")  # how the names of the simulated cloud's machines begin


@dataclass
class Account:
    """Of one case: its events by where they are, and the codes of its dead letters."""

    events: int = 0
    late: int = 0
    rejected: int = 0
    records: set[Place] = field(default_factory=set)  # those of which something became
    codes: Counter[str] = field(default_factory=Counter)

    @property
    def total(self) -> int:
        return self.events + self.late + self.rejected


def of_telemetry(
    places: Mapping[Place, str], events: Iterable[Record], late: Iterable[Record], rejected: Iterable[Record]
) -> dict[str, Account]:
    """The account of each case that was sent to a telemetry topic, by the source position that records keep."""
    accounts: dict[str, Account] = {}
    for records, where in ((events, "events"), (late, "late"), (rejected, "rejected")):
        for record in parsed(records):
            place = place_of(record.get("source"))
            case = places.get(place)
            if case is None or record.get("stage", "enrichment") != "enrichment":
                continue
            account = accounts.setdefault(case, Account())
            count = record["events"] if where == "rejected" else len(record["events"]["time_unix_nano"])
            setattr(account, where, getattr(account, where) + count)
            account.records.add(place)
            if where == "rejected":
                account.codes[record["code"]] += 1
    return accounts


def letters(records: Iterable[Record], stage: str) -> dict[Place, list[dict[str, Any]]]:
    """The dead letters of a stage by the position of what they are about."""
    found: dict[Place, list[dict[str, Any]]] = {}
    for record in parsed(records):
        if record["stage"] == stage:
            found.setdefault(place_of(record["source"]), []).append(record)
    return found


def is_object(value: bytes) -> bool:
    """Whether these bytes are a JSON object to a lenient reader; what is none, no stage can use."""
    try:
        return isinstance(json.loads(value), dict)
    except (ValueError, RecursionError):
        return False


def place_of(source: Any) -> Place:
    """The position that a record's field `source` names; one that no record has if that is none, as in damaged ones."""
    match source:
        case {"topic": str(topic), "partition": int(partition), "offset": int(offset)}:
            return Place(topic, partition, offset)
    return Place("", -1, -1)


def of_neighbours(statistics: Iterable[Record], novelties: Iterable[Record], until: int) -> Counter[bytes]:
    """What is said of the neighbours' windows that end by `until`: the whole of it, but how many machines there are."""
    said: Counter[bytes] = Counter()
    for record in parsed(statistics):
        if _is_neighbour(record) and "window" in record and record["window"]["end_unix_nano"] <= until:
            said[orjson.dumps(record, option=orjson.OPT_SORT_KEYS)] += 1
    for record in parsed(novelties):
        if _is_neighbour(record) and record["time_unix_nano"] <= until:
            told = {name: value for name, value in record.items() if name != "peers"}
            said[orjson.dumps(told, option=orjson.OPT_SORT_KEYS)] += 1
    return said


def _is_neighbour(record: Mapping[str, Any]) -> bool:
    machine = record.get("machine")
    return isinstance(machine, str) and machine.startswith(NEIGHBOURS) and "inventory" in record


def parsed(records: Iterable[Record]) -> Iterator[dict[str, Any]]:
    """Those that are JSON objects."""
    for record in records:
        try:
            value = orjson.loads(record.value or b"")
        except orjson.JSONDecodeError:
            continue
        if isinstance(value, dict):
            yield value
