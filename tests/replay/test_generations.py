"""Unchanged code gives the same records, through kills; changed settings give the expected ones; readers see one."""

import random
import threading
import time
from collections import Counter
from itertools import pairwise

import orjson
import psutil
import pytest
from confluent_kafka import TopicPartition

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from jobs.detector.settings import DetectorSettings
from ops.replay.promotion import elasticsearch
from tests.replay import expected
from tests.replay.chain import Chain, descendants
from tests.replay.report import Report

KILLS = 4
TOPICS = ("events", "events.late", "events.rejected", "statistics", "novelties")


@pytest.fixture(scope="module")
def second(chain: Chain):
    """The whole chain anew, with kills in the middle; gives how many there were."""
    process = chain.start("replay", "start", "--job", "enrichment", "--as", "v2", "--once")
    kills, chance = 0, random.Random(8)
    while process.poll() is None:
        time.sleep(chance.uniform(3, 8))
        jobs = [one for one in descendants(process) if _is_job(one)]
        if kills < KILLS and jobs:
            chance.choice(jobs).kill()
            kills += 1
    assert process.returncode == 0
    return kills


def _is_job(process: psutil.Process) -> bool:
    try:
        return process.name() == "java" or "run" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def test_a_replay_of_the_whole_chain_through_kills_is_the_same(chain: Chain, report: Report, second: int):
    found = chain.diff("live", "v2")

    assert found["differences"] == []
    _check_compared(found)
    report.add("the same from Kafka, through kills", kills=second, records=found["compared"])


def _check_compared(found: dict) -> None:
    for topic in TOPICS:
        one, other = found["compared"][topic]
        assert one == other > 0, topic


def test_a_changed_threshold_gives_exactly_the_expected_difference(chain: Chain, report: Report):
    chain.kappa(
        "replay", "start", "--job", "detector", "--set", "detector.alarms_per_day=500", "--as", "more", "--once"
    )
    differences = chain.diff("live", "more")["differences"]
    found = [one for one in differences if one["topic"] == "novelties"]

    records = expected.statistics(chain.settings.kafka_bootstrap, "statistics")
    before = expected.novelties(records, DetectorSettings())
    after = expected.novelties(records, DetectorSettings(alarms_per_day=500))
    assert _values(found, "first") == before - after
    assert _values(found, "second") == after - before
    assert after - before
    # What is told more makes other incidents.
    assert {one["topic"] for one in differences} == {"novelties", "incidents"}
    report.add("a changed threshold", differences=len(found))


def _values(differences: list[dict], side: str) -> Counter[bytes]:
    return Counter(orjson.dumps(one[side]) for one in differences if one[side])


def test_a_condition_replays_a_part(chain: Chain, report: Report):
    where = "machine in ('vm-02', 'vm-04')"
    chain.kappa("replay", "start", "--job", "detector", "--where", where, "--as", "what-if", "--once")
    records = expected.statistics(chain.settings.kafka_bootstrap, "statistics")
    part = {
        partition: [(offset, value) for offset, value in placed if _concerns(orjson.loads(value))]
        for partition, placed in records.items()
    }
    told = expected.novelties(part, DetectorSettings())
    assert expected.held(chain.settings.kafka_bootstrap, "novelties.what-if") == told
    assert told
    report.add("a part of the log", where=where, novelties=told.total())


def _concerns(record: dict) -> bool:
    return "watermark_unix_nano" in record or record["machine"] in ("vm-02", "vm-04")


def test_a_condition_that_makes_no_sense_is_refused_before_anything_starts(chain: Chain):
    said = chain.kappa("replay", "start", "--job", "detector", "--where", "machin = 1", "--as", "bad", codes=(2,))
    assert "--where" in said
    assert "bad" not in chain.kappa("replay", "list")
    assert not [topic for topic in _topics(chain) if topic.endswith(".bad")]


def _topics(chain: Chain) -> set[str]:
    return set(admin.connect(chain.settings.kafka_bootstrap).list_topics(timeout=30).topics)


class PollingReader:
    """Asks for novelties and statistics at once, each 10 ms, and notes which indices an answer came from."""

    def __init__(self, chain: Chain) -> None:
        self.client = elasticsearch(chain.settings)
        self.answers: list[frozenset[str]] = []
        self.slowest = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._poll)
        self._thread.start()

    def _poll(self) -> None:
        by_index = {"index": {"terms": {"field": "_index"}}}
        while not self._over.wait(0.01):
            began = time.monotonic()
            found = self.client.search(index="kappa-novelties,kappa-statistics", size=0, aggs=by_index)
            self.slowest = max(self.slowest, time.monotonic() - began)
            self.answers.append(frozenset(_owner(one["key"]) for one in found["aggregations"]["index"]["buckets"]))

    def stop(self) -> list[frozenset[str]]:
        self._over.set()
        self._thread.join()
        return self.answers


def _owner(index: str) -> str:
    return index.partition(".")[0]


def _both(generation: str) -> frozenset[str]:
    return frozenset({f"kappa-novelties-{generation}", f"kappa-statistics-{generation}"})


def test_readers_see_no_gap_and_no_mixture(chain: Chain, report: Report, second: int):
    reader = PollingReader(chain)
    process = chain.start("replay", "resume", "v2")
    chain.wait_until_caught_up("v2")
    chain.kappa("replay", "promote", "v2")
    process.terminate()
    process.wait(180)
    chain.kappa("replay", "rollback")
    answers = reader.stop()

    assert set(answers) == {_both("live"), _both("v2")}
    changes = [after for before, after in pairwise(answers) if before != after]
    assert changes == [_both("v2"), _both("live")]
    report.add("promote and rollback under a reader", answers=len(answers), slowest_ms=round(reader.slowest * 1000))


def test_the_promoted_generation_can_not_be_dropped_and_others_leave_nothing(chain: Chain, second: int):
    assert "readers see it" in chain.kappa("replay", "drop", "live", codes=(2,))
    chain.kappa("replay", "drop", "more")
    assert not [topic for topic in _topics(chain) if topic.endswith(".more")]
    assert not (chain.home / "checkpoints" / "more").exists()
    assert not elasticsearch(chain.settings).indices.exists(index="kappa-novelties-more.*", allow_no_indices=False)
    assert "more" not in chain.kappa("replay", "list")


def test_what_kafka_no_longer_holds_comes_the_same_from_the_archive(chain: Chain, report: Report):
    """Last in this file: it takes the telemetry from Kafka."""
    log = Log(chain.settings.kafka_bootstrap)
    ends = log.ends([topic.name for topic in chain.topics.telemetry])
    for deletion in log.admin.delete_records([TopicPartition(*place, end) for place, end in ends.items()]).values():
        deletion.result()
    start = ("replay", "start", "--job", "enrichment", "--source", "delta", "--to", "latest", "--as", "old")
    chain.kappa(*start)

    found = chain.diff("live", "old")
    assert found["differences"] == []
    _check_compared(found)
    report.add("the same from Delta", records=found["compared"])
