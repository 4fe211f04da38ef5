"""Each application runs on exactly the rights of `kappa acl`: none is missing, and without any of them something fails.

The checks before a start would name a missing right themselves: here they are left out, and Kafka is what refuses.
"""

import re
import threading
import uuid
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import orjson
import pytest
import yaml
from confluent_kafka import KafkaException, TopicPartition

from connectors.kafka import admin
from connectors.kafka.client import fetch_committed, make_admin, make_producer, open_consumer
from connectors.kafka.offsets import Log
from connectors.kafka.producer import CollectorProducer
from connectors.kafka.reader import read_records
from connectors.kafka.security import client_config
from infra.contract.topics import load_topics
from infra.contract.watermarks import is_watermark
from jobs.runtime.rights import DESCRIBE_CONFIGS
from jobs.runtime.settings import query_name
from jobs.table import JOBS
from ops.acl.principals import principals
from ops.simulator import check, feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from ops.simulator.truth import Truth
from tests.chaos.processes import Job
from tests.waiting import until

START = 1_790_000_000 * SECOND
FAULTS = (
    "late:vm-05@+60s/30s",
    "malformed:vm-03@+60s/20s",
    "silence:vm-02@+60s/60s",
    "cpu_hog:vm-03@+90s/60s",
    "new_template:vm-04@+90s/20s",
    "new_vm:vm-new@+120s",
)
WORK_SECONDS = 400.0  # for an application to read everything, on a busy machine
TRIAL_SECONDS = 400.0  # half a minute for each query of the archive, where its offsets can't be asked
# Those that read what others write come first: a trial writes again.
ORDER = ("notifier", "indexer", "archive", "rules", "detector", "statistics", "enrichment")
REFUSED = re.compile(r"not authorized|lacks a right|authorization.?(failed|exception)|AUTHORIZATION_FAILED", re.I)
HOST = ("host", "--machine=me", "--interval=0.5", "--no-journal", "--json")
DERIVED = ("events", "statistics", "novelties", "incidents", "alerts")  # one record of each is not to be used


class Hook(ThreadingHTTPServer):
    """What a webhook of the notifier calls; counts the calls."""

    def __init__(self):
        hook = self
        self.calls = 0

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                hook.calls += 1
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


@pytest.fixture(scope="module")
def hook():
    hook = Hook()
    yield hook
    hook.shutdown()


@pytest.fixture(scope="module")
def start(installation, hook):
    """Starts an application; what still runs at the end is killed."""
    routes = {
        "channels": {"hook": {"kind": "webhook", "url_env": "HOOK_URL"}},
        "routes": [{"name": "all", "topics": ["incidents", "alerts", "novelties"], "channels": ["hook"]}],
    }
    file, started = installation.home / "routes.yaml", []
    file.write_text(yaml.safe_dump(routes))

    def start(name, home=None):
        own = {"KAPPA_NOTIFIER_ROUTES": str(file), "HOOK_URL": hook.url} if name == "notifier" else {}
        job = installation.application(name, home, **own)
        job.start()
        started.append(job)
        return job

    yield start
    for job in started:
        job.clean()


@pytest.fixture(scope="module")
def fed(installation, start, hook):
    """Four simulated minutes through every application, each on its own rights; gives the truth's folder."""
    notifier = start("notifier")
    until(lambda: has_begun(installation, notifier), WORK_SECONDS, "the notifier begins")
    cloud = Cloud(START, 240 * SECOND, machines=10, faults=tuple(map(parse, FAULTS)))
    simulation = Simulation(cloud)
    with (
        installation.as_user("kappa-simulator"),
        Truth(installation.home / "truth", simulation) as truth,
    ):
        feed.run(simulation, CollectorProducer(installation.bootstrap, simulation.topics()), truth, live=False)
    for name in reversed(ORDER[1:]):
        read_to_the_end(installation, start(name))
    read_to_the_end(installation, notifier)
    return installation.home / "truth"


def has_begun(installation, notifier):
    """Whether it has noted where the topics ended when it was started first."""
    assert notifier.code is None, notifier.output()[-2000:]
    topics = [topic.name for topic in JOBS["notifier"].inputs(installation.topics)]
    places = [TopicPartition(*place) for place in Log(installation.bootstrap).partitions(topics)]
    with open_consumer(client_config(installation.bootstrap), query_name("live", "notifier")) as consumer:
        return all(place.offset >= 0 for place in fetch_committed(consumer, places))


def read_to_the_end(installation, job):
    """Let an application read everything, then end it."""

    def is_done():
        assert job.code is None, f"{job.name}: {job.code}: {job.output()[-3000:]}"
        return not installation.lag(job.name)

    until(is_done, WORK_SECONDS, f"{job.name} is behind")
    job.stop()
    assert job.code == 0, job.output()[-3000:]


def records_of(installation, topic):
    return [record for _, record in read_records(installation.bootstrap, topic) if not is_watermark(record)]


def test_the_whole_chain_runs_on_these_rights(installation, fed, hook, report):
    events = check.compare_events(fed, records_of(installation, "events"), until_unix_nano=2**62)
    assert events.passed, events.examples
    statistics, watermarks = [*read_records(installation.bootstrap, "statistics")], {}
    for partition, record in statistics:
        watermarks[partition] = max(watermarks.get(partition, 0), record.get("watermark_unix_nano", 0))
    windows = check.compare(fed, (record for _, record in statistics), until_unix_nano=min(watermarks.values()))
    assert windows.passed and windows.cells > 1000, windows.examples
    assert {one["rule"] for one in records_of(installation, "alerts")} >= {"silent-guest", "load-jump", "memory-errors"}
    found = {(one["machine"], one["verdict"]) for one in records_of(installation, "novelties") if "machine" in one}
    assert ("vm-new", "new_entity") in found
    assert hook.calls >= len({one["id"] for one in records_of(installation, "incidents")}) > 0
    report["chain"] = {"events": events.events, "windows": windows.cells, "notifications": hook.calls}


@pytest.mark.parametrize(
    ("user", "command"),
    [
        ("kappa-operator", ("rejected", "list")),
        ("kappa-operator", ("detector", "suppress", "--machine", "nobody-*")),
        ("kappa-operator", ("detector", "rules")),
        ("kappa-operator", ("inventory", "retire", "vm-09")),
        ("kappa-operator", ("inventory", "show", "vm-09")),
        ("kappa-administrator", ("topics", "apply")),
        ("kappa-administrator", ("savepoint", "create", "monday", "--all")),
        ("kappa-administrator", ("savepoint", "restore", "monday")),
        ("kappa-operator", ("rejected", "retry", "--stage", "enrichment")),
        ("kappa-administrator", ("replay", "start", "--job", "enrichment", "--as", "v2", "--on", "kubernetes")),
        ("kappa-administrator", ("replay", "list")),
        ("kappa-administrator", ("replay", "promote", "live", "--force")),
        ("kappa-administrator", ("replay", "drop", "v2")),
    ],
    ids=lambda part: part if isinstance(part, str) else " ".join(part[:2]),
)
def test_people_use_their_commands_on_their_rights(installation, fed, report, user, command):
    installation.do(*command, user=user)
    report.setdefault("commands", {})[" ".join(command[:2])] = user


def test_the_chain_is_verified_on_an_operators_rights(installation, fed, report):
    """What it found is another test's matter: the last minute of some faults isn't simulated."""
    verified = installation.attempt("verify", "--truth", str(fed), "--wait", "0", user="kappa-operator")
    assert verified.code in {0, 1} and not REFUSED.search(verified.said), verified.said[-2000:]
    report.setdefault("commands", {})["verify"] = "kappa-operator"


@pytest.fixture(scope="module")
def newest(installation, fed):
    """The newest incident and the newest alert, before something is among them that can't be read."""
    topics = ("incidents", "alerts")
    return {topic: max(records_of(installation, topic), key=lambda one: one["time_unix_nano"]) for topic in topics}


@pytest.fixture(scope="module")
def poisoned(installation, newest):
    """A record in each derived topic that no job can use: who may write dead letters has one to write.

    And in `events` one that comes again, behind the watermark: who may write late data has some.
    """
    records = [(partition, one) for partition, one in read_records(installation.bootstrap, "events") if partition == 0]
    oldest = next(one for _, one in records if not is_watermark(one))
    send(installation, {**{topic: [b"{"] for topic in DERIVED}, "events": [b"{", orjson.dumps(oldest)]})


def send(installation, values):
    """Write values into topics, as of the hour after the simulation: none is ahead of its broker."""
    producer = make_producer(client_config(installation.bootstrap), {"log_level": 0})
    for topic, some in values.items():
        for value in some:
            producer.produce(topic, value, b"vm-01", partition=0, timestamp=(START + 3_600 * SECOND) // 10**6)
    assert producer.flush(30) == 0


def rights():
    """Each application with each of its rights."""
    needed = principals({"live": (JOBS.names(), load_topics())})
    return [pytest.param(name, right, id=f"{name}: {right}") for name in ORDER for right in sorted(needed[name])]


@pytest.mark.parametrize(("name", "right"), [one for one in rights() if one.values[1].operation != DESCRIBE_CONFIGS])
def test_without_this_right_the_application_fails(installation, start, newest, poisoned, tmp_path, report, name, right):
    """From the log's beginning, with an empty home; the notifier, whom the past doesn't concern, with new records."""
    if name == "notifier":
        send_news(installation, newest)
    else:
        installation.forget(name)
    installation.deny(f"kappa-{name}", right)
    job = start(name, None if name == "notifier" else tmp_path)
    try:
        until(lambda: job.code is not None or is_refused(job) or not installation.lag(name), TRIAL_SECONDS, "undecided")
        said = [line for line in job.output().splitlines() if REFUSED.search(line)]
        assert said, f"without {right} it has read everything: {job.output()[-2000:]}"
    finally:
        job.clean()
        installation.allow(f"kappa-{name}", right)
    report.setdefault("rights", {})[f"{name}: {right}"] = said[0][:300]


def is_refused(job):
    return REFUSED.search(job.output())


def send_news(installation, newest):
    """An incident and an alert that are like the newest ones, and what can't be used."""
    values = {topic: [orjson.dumps(one | {"id": uuid.uuid4().hex}), b"{"] for topic, one in newest.items()}
    send(installation, values)


@pytest.mark.parametrize(("name", "right"), [one for one in rights() if one.values[1].operation == DESCRIBE_CONFIGS])
def test_without_this_right_the_limits_are_not_checked(installation, report, name, right):
    topics = [topic.name for topic in JOBS.used(installation.jobs(name), installation.topics)]
    with installation.as_user(f"kappa-{name}"):
        own = make_admin(client_config(installation.bootstrap), {"log_level": 0})
    installation.deny(f"kappa-{name}", right)
    try:
        until(lambda: not may_ask(own, topics), 30, f"without {right} the limits can be had")
    finally:
        installation.allow(f"kappa-{name}", right)
    until(lambda: may_ask(own, topics), 30, "with it they can't")
    report.setdefault("rights", {})[f"{name}: {right}"] = "the limits of the brokers are not checked"


def may_ask(client, topics):
    try:
        admin.read_limits(client, topics)
    except KafkaException:
        return False
    return True


# Its records are of now, months after those of the simulation: it comes last.
def test_a_host_is_streamed_on_the_rights_of_its_collector(installation, report):
    host = Job("host", HOST, installation.environment("kappa-host"), installation.home / "log" / "host.log")
    log = Log(installation.bootstrap)
    before = sum(log.ends(["telemetry.otlp.metrics"]).values())
    host.start()
    until(lambda: sum(log.ends(["telemetry.otlp.metrics"]).values()) > before + 1, WORK_SECONDS, host.output())
    host.stop()
    assert host.code == 0, host.output()
    report.setdefault("commands", {})["host"] = "kappa-host"


def test_every_right_of_an_application_is_one_that_was_taken_away(report):
    taken = report["rights"].keys()
    assert taken == {one.id for one in rights()}
    report["rights_by_application"] = Counter(name.partition(":")[0] for name in taken)
