"""Promise 3: whatever arrives, no job ends, every event is in one place, and the neighbours notice nothing.

The same recorded minutes go through the whole chain twice, on servers of their own: once alone, once with every case.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from infra.contract.topics import load_topics
from tests.chaos.reading import Place, Record
from tests.hostile.accounts import Account, letters, of_neighbours, of_telemetry, parsed
from tests.hostile.cases import Case, cases
from tests.hostile.chain import LENGTH, START, Poisoned, RecordedChain
from tests.integration.conftest import free_ports

REPORT = Path("build/hostile.json")
INTERNAL = {"events": "statistics", "statistics": "detector", "novelties": "incidents", "incidents": "indexer"}
SEEDS = 200
TOPIC_OF = {topic.format: topic.name for topic in load_topics().telemetry}
CASES = {case.name: case for case in cases(TOPIC_OF, dict.fromkeys(INTERNAL, (b"{}",)))}


@dataclass
class Run:
    """What a run of the chain left."""

    statistics: list[Record]
    novelties: list[Record]
    seeds: dict[str, list[bytes]]
    sender: Poisoned
    restarts: int
    accounts: dict[str, Account]
    letters: dict[str, dict[Place, list[dict]]]  # by the internal topic whose reader gave them
    said: Counter


def run(home: Path, feed: list[Case]) -> Run:
    """Lead the recorded minutes, and these cases with them, through a chain of its own."""
    chain = RecordedChain(home, free_ports(4))
    try:
        chain.up()
        sender = chain.feed(feed)
        chain.settle()
        statistics, novelties, rejected = (chain.log(key) for key in ("statistics", "novelties", "events.rejected"))
        return Run(
            statistics,
            novelties,
            {topic: _seeds(chain.log(topic)) for topic in INTERNAL},
            sender,
            chain.restarts(),
            of_telemetry(sender.places, chain.log("events"), chain.log("events.late"), rejected),
            {topic: letters(rejected, stage) for topic, stage in INTERNAL.items()},
            of_neighbours(statistics, novelties, START + LENGTH),
        )
    finally:
        chain.down()


def _seeds(records: list[Record]) -> list[bytes]:
    """Some good records, each of a machine that no neighbour is, and from a place that no case has."""
    found = [*parsed(record for record in records if record.key)]
    every = max(1, len(found) // SEEDS)
    elsewhere = {"machine": "poison-seed", "source": {"topic": "seed", "partition": 0, "offset": 0}}
    return [orjson.dumps(one | {name: elsewhere[name] for name in elsewhere.keys() & one}) for one in found[::every]]


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    return run(tmp_path_factory.mktemp("alone") / "kappa", [])


@pytest.fixture(scope="module")
def report():
    facts: dict[str, dict] = {}
    yield facts
    REPORT.parent.mkdir(exist_ok=True)
    known = orjson.loads(REPORT.read_bytes()) if REPORT.exists() else {}
    passed = facts.keys() == CASES.keys() and all(fact["passed"] for fact in facts.values())
    REPORT.write_bytes(orjson.dumps(known | {"passed": passed, "cases": [*facts.values()]}, option=orjson.OPT_INDENT_2))


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory, alone):
    return run(tmp_path_factory.mktemp("poisoned") / "kappa", cases(TOPIC_OF, alone.seeds))


def test_the_neighbours_are_told_the_same(alone, poisoned):
    assert alone.said.total() > 1_000
    assert any(b'"verdict"' in record for record in alone.said)
    assert poisoned.said == alone.said


@pytest.mark.parametrize("name", CASES)
def test_every_event_of_a_case_is_in_one_place(alone, poisoned, report, name):
    case, sender = CASES[name], poisoned.sender
    arrived = {place for place, of in sender.places.items() if of == name}
    fact = {"name": name, "sent": len(arrived), "refused_by_the_broker": sender.refused[name]}
    fact |= _of_internal(poisoned, case, arrived) if case.topic in INTERNAL else _of_telemetry(poisoned, case, arrived)
    fact |= {"restarts": poisoned.restarts, "neighbours_same": poisoned.said == alone.said}
    report[name] = fact | {"passed": fact["accounted"] and not fact["restarts"] and fact["neighbours_same"]}
    assert arrived or sender.refused[name], "nothing was sent"
    assert fact["accounted"], fact
    assert poisoned.restarts == 0


def _of_telemetry(poisoned: Run, case: Case, arrived: set[Place]) -> dict:
    """Every event of a case is in `events`, `events.late` or a dead letter; where damage hides their number, one is."""
    account = poisoned.accounts.get(case.name, Account())
    expected = account.total if case.events is None else len(arrived) * case.events
    return {
        "accounted": account.total == expected and account.records == arrived,
        "events": account.events,
        "late": account.late,
        "rejected": account.rejected,
        "codes": dict(account.codes),
    }


def _of_internal(poisoned: Run, case: Case, arrived: set[Place]) -> dict:
    """What no stage can use has one dead letter of the topic's reader; the others were used, or have one too."""
    dead = {place: found for place, found in poisoned.letters[case.topic].items() if place in arrived}
    unusable = poisoned.sender.unusable & arrived
    return {
        "accounted": bool(unusable) and unusable <= dead.keys() and all(len(found) == 1 for found in dead.values()),
        "unusable": len(unusable),
        "rejected": len(dead),
        "codes": dict(Counter(letter["code"] for found in dead.values() for letter in found)),
    }
