"""Promise 3: whatever arrives, no job ends, every event is in one place, and the neighbours notice nothing.

The same recorded minutes go through the whole chain twice, on servers of their own: once alone, once with every case.
"""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from infra.contract.topics import load_topics
from tests.chaos.reading import Record
from tests.hostile.accounts import Account, letters, of_neighbours, of_telemetry
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
    letters: dict
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
            letters(rejected),
            of_neighbours(statistics, novelties, START + LENGTH),
        )
    finally:
        chain.down()


def _seeds(records: list[Record]) -> list[bytes]:
    """Some good records, each of a machine that no neighbour is."""
    found = [orjson.loads(record.value) for record in records if record.key]
    every = max(1, len(found) // SEEDS)
    return [orjson.dumps(one | {"machine": "poison-seed"} if "machine" in one else one) for one in found[::every]]


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
    arrived = [place for place, of in sender.places.items() if of == name]
    account = poisoned.accounts.get(name, Account())
    dead = [poisoned.letters[place] for place in arrived if place in poisoned.letters]
    is_telemetry = case.topic not in INTERNAL
    is_accounted = (
        account.total == len(arrived) * case.events
        if case.events is not None and is_telemetry
        else len(dead) > 0 and len(dead) <= len(arrived)
    )
    codes = account.codes or Counter(letter["code"] for letter in dead)
    report[name] = {
        "name": name,
        "passed": is_accounted and poisoned.restarts == 0,
        "sent": len(arrived),
        "refused_by_the_broker": sender.refused[name],
        "accounted": is_accounted,
        "events": account.events,
        "late": account.late,
        "rejected": account.rejected or len(dead),
        "codes": dict(codes),
        "restarts": poisoned.restarts,
        "neighbours_same": poisoned.said == alone.said,
    }
    assert arrived or sender.refused[name], "nothing was sent"
    assert is_accounted, report[name]
    if not is_telemetry:
        assert {letter["stage"] for letter in dead} == {INTERNAL[case.topic]}
    assert poisoned.restarts == 0
