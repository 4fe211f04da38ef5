"""Unchanged code gives the same records, through kills; changed settings give the expected ones."""

import random
import time

import pytest

from tests.replay.chain import Chain, descendants
from tests.replay.report import Report

KILLS = 4


@pytest.fixture(scope="module")
def second(chain: Chain):
    """The whole chain anew, with kills in the middle; gives how many there were."""
    process = chain.start("replay", "start", "--job", "enrichment", "--as", "v2", "--once")
    kills, chance = 0, random.Random(8)
    while process.poll() is None:
        time.sleep(chance.uniform(3, 8))
        jobs = [one for one in descendants(process) if "run" in one.cmdline() or one.name() == "java"]
        if kills < KILLS and jobs:
            chance.choice(jobs).kill()
            kills += 1
    assert process.returncode == 0
    return kills


def test_a_replay_of_the_whole_chain_through_kills_is_the_same(chain: Chain, report: Report, second: int):
    found = chain.diff("live", "v2")

    assert found["differences"] == []
    for topic in ("events", "statistics", "novelties", "events.late", "events.rejected"):
        one, other = found["compared"][topic]
        assert one == other > 0, topic
    report.add("the same from Kafka, through kills", kills=second, records=found["compared"])
