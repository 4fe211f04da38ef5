"""Each right of people, the simulator and the collectors is one without which they are refused something.

Nothing here needs the chain. Commands run in this process as their user: a process for each of some hundred would take
seconds to start. What the administrator reads and writes as the user that runs a generation's jobs is asked for as they
ask for it before they start; that Kafka then refuses the jobs, test_rights.py shows for each application.
"""

import io
import sys
import threading
from contextlib import ExitStack, redirect_stderr, redirect_stdout

import orjson
import pyarrow as pa
import pytest
from confluent_kafka import KafkaException, TopicPartition

from connectors.kafka import admin
from connectors.kafka.client import make_admin, make_producer, open_consumer
from connectors.kafka.offsets import Log
from connectors.kafka.producer import CollectorProducer
from connectors.kafka.security import client_config
from infra.contract.dead_letters import InvalidRecordError, Source, dead_letter
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.preflight import check_rights
from jobs.runtime.rights import ALTER_CONFIGS, CREATE, DELETE, DESCRIBE, DESCRIBE_CONFIGS, READ, WRITE, Right
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.acl.principals import ADMINISTRATOR, OPERATOR, principals
from ops.cli import main
from ops.launcher import rights_in
from ops.replay import run
from ops.replay.plan import Request, plan
from ops.replay.registry import Registry, write
from ops.replay.restore import _Task, names
from ops.savepoints.saved import commit, marker_to_commit, tasks_of
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from ops.simulator.truth import Truth
from tests.rights.installation import Done
from tests.rights.test_rights import REFUSED, START
from tests.waiting import until

TOPICS = load_topics()
APPLICATIONS = {job.runs_in for job in JOBS}
NEEDED = {
    name: own
    for name, own in principals({"live": (JOBS.names(), TOPICS)}, trial=True).items()
    if name not in APPLICATIONS
}
KEPT = "kept"  # a generation that stays
COMMANDS = {
    Right("topic", "events.rejected", READ): ("rejected", "list"),
    Right("topic", "events.retry", READ): ("rejected", "list"),
    Right("topic", "detector.control", READ): ("detector", "rules"),
    Right("topic", "inventory", READ): ("inventory", "show", "vm-01"),
    Right("topic", "generations", READ): ("replay", "list"),
    Right("topic", "events", READ): ("verify", "--wait", "0"),
    Right("topic", "events.late", READ): ("verify", "--wait", "0"),
    Right("topic", "statistics", READ): ("verify", "--wait", "0"),
    Right("topic", "detector.control", WRITE): ("detector", "suppress", "--machine", "nobody-*"),
    Right("topic", "inventory", WRITE): ("inventory", "retire", "vm-02"),
    Right("topic", "events.retry", WRITE): ("rejected", "retry", "--topic", "telemetry.lines"),
    Right("transactional-id", "kappa.events.retry", WRITE): ("rejected", "retry", "--topic", "telemetry.syslog"),
    Right("group", "kappa.", DESCRIBE, is_prefix=True): ("rejected", "list"),
    # It has no topic of its own: the plan is all that is written.
    Right("topic", "generations", WRITE): (
        "replay",
        "start",
        "--job",
        "incidents",
        "--as",
        "other",
        "--on",
        "kubernetes",
    ),
}


class People:
    """What people, the simulator and collectors do in an installation, each as its own user."""

    def __init__(self, installation):
        self.installation, self.bootstrap = installation, installation.bootstrap
        self.generations = 0

    # As whoever this process is

    def command(self, *arguments):
        """Run a command as its `main` does."""
        said = io.TextIOWrapper(io.BytesIO(), write_through=True)
        with ExitStack() as changed:
            changed.enter_context(redirect_stdout(said))
            changed.enter_context(redirect_stderr(said))
            changed.callback(setattr, sys, "argv", sys.argv)
            sys.argv = ["kappa", *arguments]
            try:
                main()
                code = 0
            except SystemExit as end:
                code = end.code or 0
        return Done(code, said.buffer.getvalue().decode(errors="replace"))

    def call(self, function, *arguments):
        """The same of a function of the product."""
        try:
            function(*arguments)
        except (UserError, KafkaException) as error:
            return Done(2, str(error))
        return Done(0, "")

    def send(self, topic):
        """Write a record as a collector does that isn't ours."""
        errors = []
        producer = make_producer(client_config(self.bootstrap), {"log_level": 0})
        producer.produce(topic, b"x", b"x", on_delivery=lambda error, _: errors.append(error))
        assert producer.flush(30) == 0
        return Done(2, errors[0].str()) if errors[0] else Done(0, "")

    def plan(self, name):
        """Plan a generation of the whole chain which begins with what the archive alone has, with all its topics."""
        registry = Registry.read(self.bootstrap)
        request = Request(name, "enrichment", until="latest", source="delta", platform="kubernetes")
        planned = plan(request, Settings(), registry, Log(self.bootstrap))
        run.begin(planned, None, registry, Settings())
        restored = planned.replay.model_copy(update={"restored": names(planned, registry.topics(name, TOPICS))})
        write(self.bootstrap, planned.model_copy(update={"state": "replaying", "replay": restored}))

    def restore(self):
        """Write a record of the archive into a generation's topic, as a task of `kappa replay start` does."""
        topic, row = "telemetry.lines", {"partition": 0, "offset": 0, "timestamp_ms": 1, "key": b"k", "value": b"v"}
        columns = {"topic": pa.array([topic]), **{name: pa.array([value]) for name, value in row.items()}}
        columns["headers"] = pa.array([None], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))
        task = _Task(self.bootstrap, f"kappa.{KEPT}.restore", {topic: f"{topic}.{KEPT}"})
        return self.call(lambda: list(task(iter([pa.RecordBatch.from_pydict(columns)]))))

    def put_back(self):
        """Put the progress marker of a task back, as `kappa savepoint restore` does."""
        progress = tasks_of(Settings(), f"kappa.{KEPT}.enrichment", "run")
        return self.call(commit, progress, progress.group, [marker_to_commit(progress, 0, 1, 1)])

    def ask_for_rights(self):
        """Ask whether all jobs of a generation may run, as each asks before it starts."""
        registry = Registry.read(self.bootstrap)
        needed = rights_in(registry.jobs(KEPT), registry.topics(KEPT, TOPICS), KEPT)
        return self.call(check_rights, Settings(), needed, threading.Event())

    def limits(self):
        """Ask for the brokers' limits, as a job does before it starts."""
        return self.call(admin.read_limits, make_admin(client_config(self.bootstrap), {"log_level": 0}), ["events"])

    # As the servers' administrator

    def delete(self, topic):
        """Delete a topic."""
        client = admin.connect(self.bootstrap)
        admin.delete(client, [topic])
        until(lambda: topic not in client.list_topics(timeout=30).topics, 30, f"{topic} is still there")

    def narrow(self, topic):
        """Let a topic take smaller records than the map says."""
        admin.set_config(admin.connect(self.bootstrap), {topic: {"max.message.bytes": "1000000"}})

    def new_generation(self):
        """A generation that may be dropped, with a consumer group."""
        self.generations += 1
        name = f"g{self.generations}"
        self.plan(name)
        with open_consumer(client_config(self.bootstrap), f"kappa.{name}.enrichment") as consumer:
            consumer.commit(offsets=[TopicPartition("telemetry.lines", 0, 0)], asynchronous=False)
        return name


@pytest.fixture(scope="module")
def people(installation):
    """The installation with something to be read: a simulation's telemetry, and dead letters of every topic."""
    found = People(installation)
    cloud = Cloud(START, 120 * SECOND, machines=4, faults=(parse("late:vm-02@+30s/10s"),))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in installation.environment("").items():
            if name != "KAPPA_SECRETS":
                patch.setenv(name, value)
        simulation = Simulation(cloud)
        with installation.as_user("kappa-simulator"), Truth(installation.home / "truth", simulation) as truth:
            feed.run(simulation, CollectorProducer(installation.bootstrap, simulation.topics()), truth, live=False)
        write_letters(installation.bootstrap)
        with installation.as_user("kappa-administrator"):
            found.plan(KEPT)
        yield found


def write_letters(bootstrap):
    """A dead letter of a record of each topic that an operator reads; its bytes are in its own topic alone."""
    producer = make_producer(client_config(bootstrap), {"log_level": 0})
    places = []
    read = {right.name for right in NEEDED[OPERATOR] if (right.kind, right.operation) == ("topic", READ)}
    for topic in read - {"generations", "events.rejected", "events.retry", "events.late"}:
        producer.produce(topic, b"x", b"x", 0, on_delivery=lambda error, at: places.append((error, at)))
    assert producer.flush(30) == 0
    for error, at in places:
        assert error is None, error
        source = Source(at.topic(), at.partition(), at.offset(), START // 10**6)
        letter = dead_letter("enrichment", source, InvalidRecordError("not_json", "x"), None)
        del letter["value"]  # as where it would be too large
        producer.produce("events.rejected", orjson.dumps(letter | {"id": at.topic()}), b"x")
    assert producer.flush(30) == 0


def act_of(people, principal, right):
    """What this right is needed for: what the servers' administrator does first, and what the principal then does."""
    kind, topic, operation = right.kind, right.name, right.operation
    if principal not in (OPERATOR, ADMINISTRATOR):
        return None, lambda _: people.send(topic)
    if right in COMMANDS:
        return None, lambda _: people.command(*COMMANDS[right])
    if principal == OPERATOR:
        return None, lambda _: people.command("rejected", "show", topic, "--raw")
    if operation == DELETE:
        return people.new_generation, lambda name: people.command("replay", "drop", name)
    if operation == CREATE:
        return lambda: people.delete(topic), lambda _: people.command("topics", "apply")
    if operation == ALTER_CONFIGS:
        return lambda: people.narrow(topic), lambda _: people.command("topics", "apply")
    if operation == DESCRIBE_CONFIGS:
        return None, lambda _: people.limits()
    if kind == "transactional-id":
        return None, lambda _: people.restore()
    if kind == "group" or topic == "sink.progress":
        return None, lambda _: people.put_back()
    if operation == WRITE and TOPICS[topic].format:
        return None, lambda _: people.send(f"{topic}.{KEPT}")  # where a replay restores the archive's records
    return None, lambda _: people.ask_for_rights()


def cases():
    """Each right of each principal; those by which topics are made come last, as what is in these is deleted."""
    found = [(name, right) for name, own in NEEDED.items() for right in sorted(own)]
    found.sort(key=lambda case: case[1].operation == CREATE)
    return [pytest.param(name, right, id=f"{name}: {right}") for name, right in found]


@pytest.mark.parametrize(("principal", "right"), cases())
def test_without_this_right_something_is_refused(installation, people, report, principal, right):
    user = f"kappa-{principal}"
    before, act = act_of(people, principal, right)
    subject = before() if before else None
    installation.deny(user, right)
    try:
        with installation.as_user(user):
            without = act(subject)
    finally:
        installation.allow(user, right)
    with installation.as_user(user):
        granted = act(subject)
    assert without.code == 2 and REFUSED.search(without.said), f"without {right}: {without}"
    # `verify` exits with 1: no chain has answered. So does what has changed something that differed.
    assert granted.code in {0, 1} and not REFUSED.search(granted.said), f"with {right}: {granted}"
    report.setdefault("rights_of_people", {})[f"{principal}: {right}"] = without.said.strip()[-300:]
