"""The rules job, added to a running chain by configuration alone: what it finds is what the simulator did."""

from pathlib import Path

import orjson
import pytest
import yaml
from jsonschema import Draft202012Validator

from connectors.kafka import admin
from connectors.kafka.offsets import Log
from connectors.kafka.producer import CollectorProducer
from infra.contract.json_schema import json_schema
from infra.contract.schemas import ALERTS
from infra.contract.topics import DEFAULT_MAP, load_topics
from infra.jars import default_jars
from infra.local.kafka import KafkaBroker
from jobs.rules.job import FOLD
from jobs.rules.settings import DEFAULT_RULES, RulesSettings
from jobs.runtime.shard_state import Input
from jobs.table import JOBS
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from ops.simulator.truth import Truth
from tests.chaos.processes import Job
from tests.chaos.reading import read_topic
from tests.integration.conftest import free_ports
from tests.waiting import until

DEADLINE_SECONDS = 250
SCRAPE = 5 * SECOND
START = 1_790_000_000 * SECOND
FAULTS = (
    "silence:vm-02@+60s/60s",
    "cpu_hog:vm-03@+60s/60s",
    "new_template:vm-04@+90s/20s",
    "log_burst:vm-05@+60s/20s",  # no rule is about it
)
CAUSED = {"silence": "silent-guest", "cpu_hog": "load-jump", "new_template": "memory-errors"}

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """A simulated cloud's `alerts`, after rules was killed once, its `events` and its faults."""
    home = tmp_path_factory.mktemp("rules")
    broker = KafkaBroker(home / "broker", free_ports(4), jars=default_jars())
    broker.spawn()
    jobs = []
    try:
        until(broker.ready, 60, "the broker does not answer")
        environment = _environment(home, broker.address)
        topics = load_topics(_map(home))
        admin.apply(admin.connect(broker.address), topics)
        _feed(home, broker.address)
        batches = {"KAPPA_MAX_OFFSETS_PER_TRIGGER": "200"}  # so that there are several, with watermarks between them
        jobs.append(_started("enrichment", {**environment, **batches}, home))
        _wait_until_read(jobs[0], "enrichment", broker.address, [topic.name for topic in topics.telemetry])
        jobs[0].stop()  # so that the cores are for rules
        # All that an operator does to add the job: the name of it, and the file of rules.
        rules = {"KAPPA_RULES_FILE": str(_rules(home)), "KAPPA_MAX_OFFSETS_PER_TRIGGER": "60"}
        jobs.append(_started("rules", {**environment, **rules}, home))
        _kill_half_way(jobs[1], broker.address)
        jobs[1].start()
        _wait_until_read(jobs[1], "rules", broker.address, ["events"])
        jobs[1].stop()
        assert [job.code for job in jobs] == [0, 0]
        faults = [orjson.loads(line) for line in (home / "truth" / "faults.jsonl").read_bytes().splitlines()]
        yield read_topic(broker.address, "alerts"), read_topic(broker.address, "events"), faults
    finally:
        for job in jobs:
            job.clean()
        broker.stop()


def _map(home):
    declared = yaml.safe_load(DEFAULT_MAP.read_text())
    declared["telemetry"]["timestamp"] = declared["topics"]["inventory"]["timestamp"] = "CreateTime"
    declared["defaults"]["retention"] = "3650d"
    file = home / "topics.yaml"
    file.write_text(yaml.safe_dump(declared, sort_keys=False))
    return file


def _rules(home):
    file = home / "my-rules.yaml"
    file.write_bytes(DEFAULT_RULES.read_bytes())
    return file


def _environment(home, bootstrap):
    return {
        "KAPPA_HOME": str(home),
        "KAPPA_JARS": str(default_jars()),
        "KAPPA_TOPICS_FILE": str(home / "topics.yaml"),
        "KAPPA_KAFKA_BOOTSTRAP": bootstrap,
        "KAPPA_METRICS_PORT": "0",
        "KAPPA_TRIGGER_SECONDS": "0.2",
        "JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1",
    }


def _feed(home, bootstrap):
    cloud = Cloud(START, 240 * SECOND, machines=10, faults=tuple(map(parse, FAULTS)))
    simulation = Simulation(cloud)
    with Truth(home / "truth", simulation) as truth:
        feed.run(simulation, CollectorProducer(bootstrap, simulation.topics()), truth, live=False)


def _started(job, environment, home: Path):
    started = Job(job, ("run", job), environment, home / f"{job}.log")
    started.start()
    return started


def _lag(log, job, names):
    ends = log.ends(names)
    return sum(ends.values()) - sum(log.committed(f"kappa.live.{job}", ends).values())


def _wait_until_read(process, job, bootstrap, names):
    log = Log(bootstrap)

    def is_read():
        assert process.code is None, process.output()[-2000:]
        return _lag(log, job, names) == 0

    until(is_read, DEADLINE_SECONDS, f"{job} is behind")


def _kill_half_way(process, bootstrap):
    log = Log(bootstrap)
    whole = sum(log.ends(["events"]).values())

    def is_half_way():
        assert process.code is None, process.output()[-2000:]
        return _lag(log, "rules", ["events"]) < whole * 2 / 3

    until(is_half_way, DEADLINE_SECONDS, "rules does not begin", pause=0.05)
    process.kill()
    assert _lag(log, "rules", ["events"]) > 0, "nothing is left to do: the kill came too late"


def _alerts(records):
    return [alert for record in records if "rule" in (alert := orjson.loads(record.value))]


def test_what_it_writes_meets_its_published_schema(chain):
    schema = Draft202012Validator(json_schema("alerts", ALERTS))
    assert chain[0]
    for record in chain[0]:
        schema.validate(orjson.loads(record.value))


def test_it_finds_what_was_done_and_nothing_else(chain):
    records, _, faults = chain
    done = {(CAUSED[fault["kind"]], fault["machine"]): fault for fault in faults if fault["kind"] in CAUSED}
    starts = [alert for alert in _alerts(records) if alert["phase"] == "start"]
    assert sorted((alert["rule"], alert["machine"]) for alert in starts) == sorted(done)
    for alert in starts:
        fault = done[alert["rule"], alert["machine"]]
        # Log lines are of the time since the scrape before.
        assert fault["start_unix_nano"] - SCRAPE <= alert["time_unix_nano"] <= fault["end_unix_nano"], alert
        assert alert["inventory"]["known"] and alert["machine"] in alert["text"]


def test_an_absence_ends_when_the_machine_is_back(chain):
    records, _, faults = chain
    (fault,) = (fault for fault in faults if fault["kind"] == "silence")
    start, end = (alert for alert in _alerts(records) if alert["rule"] == "silent-guest")
    assert (start["phase"], end["phase"], start["id"]) == ("start", "end", end["id"])
    assert abs(end["time_unix_nano"] - fault["end_unix_nano"]) <= SCRAPE


def test_nothing_is_lost_or_doubled_by_a_kill(chain):
    """The topic holds, partition by partition, the bytes that the fold gives without Spark or Kafka."""
    alerts, events, _ = chain
    assert len([record for record in events if record.key is None]) > 8  # watermarks: some before the kill, some after
    opener = FOLD.opener(RulesSettings(), load_topics())
    for partition in range(load_topics()["events"].partitions):
        log = [record for record in events if record.place.partition == partition]
        offsets, values = [record.place.offset for record in log], [record.value for record in log]
        expected = [
            output.value for output in opener(None).feed(Input("events", partition, offsets, values)) if output.key
        ]
        written = [record.value for record in alerts if record.place.partition == partition and record.key]
        assert written == expected


def test_it_runs_only_where_it_is_asked_for():
    assert "rules" not in JOBS.enabled()
    assert "rules" in JOBS.enabled(["rules"])
