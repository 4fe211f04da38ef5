"""Promise 2: the same topics give the same bytes of `statistics`, in whatever way the chain goes through them.

And those of the version that was recorded, in `statistics`, `novelties` and `incidents`: `recorded.json`.
A change that is meant to give other records brings a new one, and says in its commit which fields differ.
"""

from pathlib import Path

import orjson
import pytest

from infra.contract.topics import LIVE as GENERATION
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from tests.determinism.lab import Found, Lab, differences
from tests.integration.conftest import free_ports
from tests.waiting import until

REPORT = Path("build/determinism.json")
LIVE = "live, while the hour is recorded"
WAYS = {
    "replay: 300 records a batch, one core, one task, kill -9 and restart four times": lambda lab, how: lab.killed(
        how, "killed", times=4, max_offsets_per_trigger=300, spark_master="local[1,4]", shuffle_partitions=1
    ),
    "replay: 1,000,000 records a batch, two cores, three tasks": lambda lab, how: lab.replay(
        how, "large", max_offsets_per_trigger=1_000_000, shuffle_partitions=3
    ),
    "events one partition after the other, an hour apart, in another order between watermarks": lambda lab, how: (
        lab.apart(how, "apart")
    ),
    "the fold without Spark, all at once": lambda lab, how: lab.without_spark(how),
    "the fold, each watermark a hundred records later": lambda lab, how: lab.without_spark(how, later=100),
}
RECORDED = orjson.loads((Path(__file__).parent / "recorded.json").read_bytes())


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    home = tmp_path_factory.mktemp("determinism")
    broker = KafkaBroker(home, free_ports(4), jars=default_jars())
    broker.spawn()
    until(broker.ready, 60, "the broker does not answer")
    lab = Lab(home, broker.address)
    try:
        lab.prepare()
        yield lab
    finally:
        for job in lab.jobs:
            job.clean()
        broker.stop()


@pytest.fixture(scope="module")
def values():
    """Of each topic of the live way: how many records, and their digest."""
    return {}


@pytest.fixture(scope="module")
def found(values):
    """What each way gave; the report is written of it, passed only if none was left out."""
    runs: dict[str, Found] = {}
    yield runs
    digests = {run.sha256 for run in runs.values()}
    passed = len(digests) == 1 and runs.keys() == {LIVE, *WAYS}
    # None if the comparison with the recorded version has not run: it isn't passed then, either.
    same = values == RECORDED if values else None
    REPORT.parent.mkdir(exist_ok=True)
    report = {
        "passed": passed and same is True,
        "same_values": same,
        "values": values,
        "runs": [run.facts() for run in runs.values()],
    }
    REPORT.write_bytes(orjson.dumps(report, option=orjson.OPT_INDENT_2))


@pytest.fixture(scope="module")
def live(lab, found):
    found[LIVE] = lab.live(LIVE)
    return found[LIVE]


def test_the_recorded_hour_holds_every_kind_of_window(live):
    records = [orjson.loads(value) for _, _, value in live.records]
    assert {record["window"]["kind"] for record in records} == {"tumbling", "sliding", "session", "count"}
    assert {record["window"]["size_seconds"] for record in records if record["window"]["kind"] == "tumbling"} == {
        10,
        60,
    }
    assert any("rate" in record["statistics"] for record in records)
    ids = [record["id"] for record in records]
    assert len(ids) == len(set(ids)) > 5_000


def test_the_records_are_those_of_the_recorded_version(lab, live, values):
    for topic in RECORDED:
        found = lab.found(LIVE, GENERATION, topic)
        values[topic] = {"records": len(found.records), "sha256": found.sha256}
    assert values == RECORDED


@pytest.mark.parametrize("how", WAYS)
def test_the_same_bytes(lab, live, found, how):
    found[how] = WAYS[how](lab, how)
    assert next(differences(live, found[how]), None) is None
    assert found[how].sha256 == live.sha256
