"""The chain as processes on real servers, against what the simulator knows: every event, window and archived record."""

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime

import orjson
import pytest
import yaml
from jsonschema import Draft202012Validator

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from connectors.kafka.producer import CollectorProducer
from connectors.kafka.reader import read_records
from infra.contract.json_schema import json_schema
from infra.contract.schemas import SCHEMAS
from infra.contract.topics import DEFAULT_MAP, load_topics
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from jobs.detector import control
from jobs.detector.rules import Rule
from jobs.table import JOBS as JOB_TABLE
from ops.simulator import check, feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from ops.simulator.truth import Truth
from tests.integration.conftest import free_ports
from tests.waiting import until

DEADLINE_SECONDS = 400  # for each job that is started, on a busy machine
pytestmark = pytest.mark.timeout(5 * DEADLINE_SECONDS)
JOBS = ("enrichment", "statistics", "detector", "archive")
RULE = Rule(machine="nobody-*", size=2.0)
FAULTS = ("late:vm-05@+60s/30s", "malformed:vm-03@+60s/20s", "wrong_clock:vm-06@+70s/20s", "new_vm:vm-new@+120s")


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory):
    """A broker of its own: the map's names, with another clock than other tests create them with."""
    broker = KafkaBroker(tmp_path_factory.mktemp("broker"), free_ports(4), jars=default_jars())
    broker.spawn()
    until(broker.ready, 60, "the broker does not answer")
    yield broker.address
    broker.stop()


@pytest.fixture(scope="module")
def telemetry(bootstrap, tmp_path_factory):
    """The map with the sender's clock, its topics, and four simulated minutes in them; gives (map, folder, truth)."""
    folder = tmp_path_factory.mktemp("chain")
    declared = yaml.safe_load(DEFAULT_MAP.read_text())
    declared["telemetry"]["timestamp"] = declared["topics"]["inventory"]["timestamp"] = "CreateTime"
    topics_file = folder / "topics.yaml"
    topics_file.write_text(yaml.safe_dump(declared, sort_keys=False))
    admin.apply(admin.connect(bootstrap), load_topics(topics_file))
    length = 240 * SECOND
    start = (int(datetime.now(UTC).timestamp()) - 300) * SECOND
    cloud = Cloud(start_unix_nano=start, duration=length, machines=10, faults=tuple(parse(fault) for fault in FAULTS))
    simulation = Simulation(cloud)
    with Truth(folder / "truth", simulation) as truth:
        feed.run(simulation, CollectorProducer(bootstrap, simulation.topics()), truth, live=False)
    control.send(bootstrap, load_topics(topics_file)[control.TOPIC], control.suppress(RULE), "a test")
    return topics_file, folder, folder / "truth"


@pytest.fixture(scope="module")
def chain(bootstrap, telemetry):
    """The chain's topics and tables after all jobs have read everything and were stopped; gives a reader of topics."""
    topics_file, folder, _ = telemetry
    environment = {
        **os.environ,
        "KAPPA_HOME": str(folder),
        "KAPPA_JARS": str(default_jars()),
        "KAPPA_TOPICS_FILE": str(topics_file),
        "KAPPA_KAFKA_BOOTSTRAP": bootstrap,
        "KAPPA_METRICS_PORT": "0",
        "KAPPA_TRIGGER_SECONDS": "0.5",
        "KAPPA_ARCHIVE_TRIGGER_SECONDS": "0.5",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",  # they live for minutes: less compilation
    }
    codes = {}
    for job in JOBS:  # one by one, each with the cores for itself
        command = [sys.executable, "-m", "ops.cli", "run", job]
        process = subprocess.Popen(command, env=environment, start_new_session=True)
        try:
            _wait_until_read(bootstrap, load_topics(topics_file), job, process)
            process.send_signal(signal.SIGTERM)
            codes[job] = process.wait(120)
        finally:
            process.kill()
    return codes, lambda topic: [record for _, record in read_records(bootstrap, topic)]


def _wait_until_read(bootstrap, topics, job, process):
    """The job has committed the end of what it reads."""
    reads = [
        ("enrichment", "kappa.live.enrichment", [topic.name for topic in topics.telemetry]),
        ("statistics", "kappa.live.statistics", ["events"]),
        ("detector", "kappa.live.detector", ["statistics"]),
        ("detector", "kappa.live.incidents", ["novelties"]),
        ("archive", "kappa.live.archive.log", [topic.name for topic in topics.archived]),
    ]
    log, deadline = Log(bootstrap), time.monotonic() + DEADLINE_SECONDS
    for group, names in [(group, names) for name, group, names in reads if name == job]:
        ends = log.ends(names)
        while lag := sum(ends.values()) - sum(log.committed(group, ends).values()):
            assert time.monotonic() < deadline, f"{group} is {lag} records behind"
            assert process.poll() is None, f"{job} ended: {process.returncode}"
            time.sleep(1)
            ends = log.ends(names)


def test_every_job_ends_well_on_sigterm(chain):
    codes, _ = chain
    assert codes == dict.fromkeys(JOBS, 0)


# Nothing is decided of an hour that is long over: tests/integration/jobs/enrichment/test_lateness.py
OPTIONAL = {key for job in JOB_TABLE for key in (job.writes if job.optional else [job.decides])}
WRITTEN = [
    topic
    for key, topic in load_topics().topics.items()
    if topic.schema_name and not {"kappa inventory"} & {*topic.written_by} and key not in OPTIONAL
]


@pytest.mark.parametrize("topic", WRITTEN, ids=[topic.name for topic in WRITTEN])
def test_what_the_jobs_write_meets_its_published_schema(chain, topic):
    schema = Draft202012Validator(json_schema(topic.name, SCHEMAS[topic.schema_name]))
    records = chain[1](topic.name)
    assert records
    for record in records[:300]:
        schema.validate(record)


def test_every_accepted_event_is_there_once(chain, telemetry):
    report = check.compare_events(telemetry[2], chain[1]("events"), until_unix_nano=2**62)
    assert report.passed, report.examples


def test_every_window_is_right(chain, telemetry, bootstrap):
    watermarks: dict[int, int] = {}
    for partition, record in read_records(bootstrap, "statistics"):
        watermarks[partition] = max(watermarks.get(partition, 0), record.get("watermark_unix_nano", 0))
    assert len(watermarks) == 4
    report = check.compare(telemetry[2], chain[1]("statistics"), until_unix_nano=min(watermarks.values()))
    assert report.passed, report.examples
    assert report.cells > 1000


def test_what_was_late_or_unusable_is_kept(chain, telemetry):
    totals = orjson.loads((telemetry[2] / "totals.json").read_bytes())
    late = sum(len(record["events"]["time_unix_nano"]) for record in chain[1]("events.late"))
    rejected = chain[1]("events.rejected")
    assert late == totals["late"] > 0
    assert sum(record["events"] for record in rejected) == totals["rejected"]
    assert {record["code"] for record in rejected} >= {"future"}
    assert sum(r["events"] for r in rejected if r["code"] == "future") == totals["future"] > 0


def test_a_rule_reaches_the_detector_once_in_each_partition(chain, bootstrap):
    passed = [(p, record["control"]) for p, record in read_records(bootstrap, "statistics") if "control" in record]
    assert sorted(partition for partition, _ in passed) == [0, 1, 2, 3]
    assert [emitted for _, emitted in passed] == 4 * [{**control.suppress(RULE), "by": "a test"}]
    assert control.rules(bootstrap, control.TOPIC) == {RULE.id: RULE}


def test_the_new_machine_is_told(chain):
    emitted = [n for n in chain[1]("novelties") if n.get("machine") == "vm-new" and n["verdict"] == "new_entity"]
    assert emitted
    assert len({n["id"] for n in emitted if n["kind"] == "machine"}) == 1


def test_every_novelty_is_of_one_incident(chain):
    newest = {one["id"]: one for one in chain[1]("incidents") if "merged_into" not in one}
    watermarks = [n["watermark_unix_nano"] for n in chain[1]("novelties") if "watermark_unix_nano" in n]
    starts = [n for n in chain[1]("novelties") if n.get("phase") == "start"]
    assert max(n["time_unix_nano"] for n in starts) < max(watermarks)
    assert sum(incident["novelties"] for incident in newest.values()) == len(starts)
    machines = {member["machine"] for incident in newest.values() for member in incident["members"]}
    assert machines == {n["machine"] for n in starts}


def test_the_archive_holds_every_record_once(chain, telemetry, bootstrap, spark):
    topics_file, folder, _ = telemetry
    archived = spark.read.format("delta").load(str(folder / "delta" / "live" / "log"))
    rows = archived.select("topic", "partition", "offset", "value").collect()
    for name in (topic.name for topic in load_topics(topics_file).archived if topic.is_derived):
        found = sorted(orjson.dumps(orjson.loads(row.value)) for row in rows if row.topic == name)
        expected = sorted(orjson.dumps(record) for _, record in read_records(bootstrap, name))
        assert found == expected, name
    places = [(row.topic, row.partition, row.offset) for row in rows]
    assert len(places) == len(set(places))
