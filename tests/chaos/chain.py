"""The whole chain as it really runs: servers, jobs as processes, a simulated cloud that feeds it."""

import os
import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

import orjson
from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    OffsetSpec,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from connectors.kafka.admin import apply, connect
from connectors.kafka.client import make_admin, make_producer, open_consumer
from connectors.kafka.offsets import latest_offsets
from connectors.kafka.security import SECRETS, client_config
from infra.contract.topics import TopicMap
from infra.errors import UserError
from infra.files import write_private
from infra.jars import default_jars
from infra.local import LocalServers
from infra.local.identities import ADMIN, PASSWORD
from jobs.runtime.settings import Settings
from jobs.runtime.watermarks import last_watermarks
from jobs.table import JOBS as JOB_TABLE
from ops.launcher import topics_of
from tests.chaos.processes import CODE, Job
from tests.chaos.proxy import Proxy
from tests.waiting import until

JOBS = tuple(JOB_TABLE.applications(JOB_TABLE.enabled()))
SPARK_JOBS = tuple(name for name in JOBS if JOB_TABLE[name].uses_spark)
SETTLE_SECONDS = 600.0
# What makes late, rejected and surprising records, from early on and for as long as a scenario may last.
FAULTS = (
    "late:vm-05@+5s/30m",
    "malformed:vm-03@+5s/30m",
    "wrong_clock:vm-06@+10s/30m",
    "log_burst:vm-12@+20s/30s",
    "cpu_hog:vm-17@+30s/40s",
    "silence:vm-20@+30s/50s",
)

# Most of these JVMs live for seconds: less compilation. (Which collector they have, the jobs say.)
SHORT_LIVED = "-XX:TieredStopAtLevel=1"

Offsets = dict[tuple[str, int], int]


@dataclass(frozen=True)
class Ports:
    """Where a chain's servers listen, from `first` on; a secured broker takes a port more."""

    first: int
    brokers: int
    secured: bool = False

    @property
    def elasticsearch(self) -> int:
        return self.first + (3 if self.secured else 2) * self.brokers

    @property
    def listener(self) -> int:
        """The broker's second listener, which tells clients to come through the proxy."""
        return self.elasticsearch + 2

    @property
    def proxy(self) -> int:
        return self.elasticsearch + 3


def second_listener(ports: Ports) -> dict[str, object]:
    """The settings of a single broker that can also be reached through a proxy."""
    own = f"PLAINTEXT://127.0.0.1:{ports.first}"
    return {
        "listeners": f"{own},PROXIED://127.0.0.1:{ports.listener},CONTROLLER://127.0.0.1:{ports.first + 1}",
        "advertised.listeners": f"{own},PROXIED://127.0.0.1:{ports.proxy}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
    }


class Chain:
    """Servers and jobs below one home. A thread starts again whatever job has died, as an orchestrator would.

    With `secured` the servers ask who a client is: each application is a user of its own, this process their
    administrator. `storage` are settings, as variables, of where checkpoints and tables are: by default below the home.
    """

    def __init__(
        self,
        home: Path,
        first_port: int,
        brokers: int = 1,
        *,
        secured: bool = False,
        storage: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.home = home
        self.secured, self.storage = secured, storage
        ports = Ports(first_port, brokers, secured)
        self.servers = LocalServers(
            home,
            kafka_port=first_port,
            elasticsearch_port=ports.elasticsearch,
            brokers=brokers,
            jars=default_jars(),
            kafka_overrides=second_listener(ports) if brokers == 1 else None,
            secured=secured,
        )
        self.proxy = Proxy(ports.proxy, ports.listener) if brokers == 1 else None
        self.proxied_bootstrap = f"127.0.0.1:{ports.proxy}"
        self.settings = Settings(
            home=home,
            checkpoints=storage.get("KAPPA_CHECKPOINTS"),
            delta=storage.get("KAPPA_DELTA"),
            kafka_bootstrap=self.servers.bootstrap,
            elasticsearch_url=self.servers.elasticsearch_url,
        )
        self.jobs = {name: Job(name, ("run", name), self._environment(name), home / f"log/{name}.log") for name in JOBS}
        self.feeds: list[Job] = []
        self.failed = False  # a scenario failed: the next one needs another chain
        self._held: set[str] = set()  # jobs that are not started again
        self._complaint: Exception | None = None
        self._over = threading.Event()

    @property
    def topics(self) -> TopicMap:
        return topics_of(self.settings)

    @cached_property
    def _admin(self) -> AdminClient:
        return make_admin(client_config(self.servers.bootstrap), {"log_level": 0})

    def secrets_of(self, user: str) -> Path:
        """The folder of a user of secured servers, by its name without the installation's prefix."""
        assert self.servers.identities
        return self.servers.identities.user(f"{self.settings.principal_prefix}{user}")

    def _environment(self, user: str) -> Mapping[str, str]:
        return {
            **(self._identity_of(user) if self.secured else {}),
            "KAPPA_HOME": str(self.home),
            **self.storage,
            "KAPPA_KAFKA_BOOTSTRAP": self.settings.kafka_bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.settings.elasticsearch_url,
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_TRIGGER_SECONDS": "1",
            "KAPPA_ARCHIVE_TRIGGER_SECONDS": "5",
            "KAPPA_JARS": str(default_jars()),
            "JAVA_TOOL_OPTIONS": os.environ.get("KAPPA_CHAOS_JAVA_OPTIONS", SHORT_LIVED),
            "PYTHONPATH": CODE,
        }

    def _identity_of(self, user: str) -> Mapping[str, str]:
        # It waits for the broker to let it in, as what the supervisor starts again does.
        return {SECRETS: str(self.secrets_of(user)), "KAPPA_BROKER_PATIENCE_SECONDS": "600"}

    def up(self) -> None:
        """A clean home, servers, topics, jobs."""
        self.servers.down()
        shutil.rmtree(self.home, ignore_errors=True)
        self.servers.up()
        if self.secured:
            self._become_administrator()
        apply(connect(self.settings.kafka_bootstrap), self.topics)
        if self.secured:
            self._make_users()
        for job in self.jobs.values():
            job.start()
        threading.Thread(target=self._tend, daemon=True).start()

    def _become_administrator(self) -> None:
        assert self.servers.identities
        os.environ[SECRETS] = str(self.servers.identities.user(ADMIN))
        self.settings = Settings(**self.settings.model_dump(exclude_unset=True))  # with the secrets of that user

    def _make_users(self) -> None:
        assert self.servers.identities
        users = str(self.servers.identities.user(""))
        for command in (("acl", "apply", "--trial", "--users", users), ("acl", "keys", users)):
            environment = self._environment("") | {SECRETS: os.environ[SECRETS]}
            done = Job("acl", command, environment, self.home / "log" / "acl.log")
            done.start()
            until(lambda done=done: done.code is not None, 120, "kappa acl does not end")
            assert done.code == 0, done.output()

    def rotate_password(self, user: str) -> None:
        """Give a user another password: first on the broker, then in its folder."""
        name, password = f"{self.settings.principal_prefix}{user}", secrets.token_urlsafe(24)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
        for answer in self._admin.alter_user_scram_credentials(
            [UserScramCredentialUpsertion(name, info, password.encode())]
        ).values():
            answer.result(60)
        write_private(self.secrets_of(user) / PASSWORD, password.encode())

    def down(self) -> None:
        """End everything that was started here."""
        self._over.set()
        for job in (*self.feeds, *self.jobs.values()):
            job.clean()
        self.servers.down()
        if self.secured:
            os.environ.pop(SECRETS, None)
        if self.proxy:
            self.proxy.close()

    # Jobs

    def hold(self, *names: str) -> None:
        """Leave these jobs dead once they die."""
        self._held.update(names)

    def restart(self, *names: str, **environment: str) -> None:
        """Stop these jobs in good order and start them with more environment, tended again."""
        self.hold(*names)
        for name in names:
            self.jobs[name].stop()
            self.jobs[name].extra = environment
            self.jobs[name].start()
        self._held.difference_update(names)

    def release(self, *names: str) -> None:
        """Tend these jobs again."""
        self._held.difference_update(names)

    def check(self) -> None:
        """Raises what the tending thread has run into."""
        if self._complaint:
            raise self._complaint

    def _tend(self) -> None:
        while not self._over.wait(0.1):
            for name, job in self.jobs.items():
                if name in self._held:
                    continue
                try:
                    job.tend()
                except Exception as error:
                    self._held.add(name)
                    self._complaint = error

    # Feeds

    def feed(self) -> Job:
        """Start a simulated cloud with faults and wait for its broker; its truth goes into a folder of its own."""
        name = f"feed-{len(self.feeds)}"
        faults = [part for fault in FAULTS for part in ("--fault", fault)]
        command = ("simulate", "--json", "--truth", str(self.home / "truth" / name), *faults)
        feed = Job(name, command, self._environment("simulator"), self.home / f"log/{name}.log")
        feed.start()
        self.feeds.append(feed)
        until((self.home / "truth" / name / "cloud.json").exists, 120, "the simulator does not start")
        return feed

    def end_feed(self) -> int:
        """End the cloud once all that it sent is delivered; how many events it has produced."""
        feed = self.feeds[-1]
        feed.stop()
        assert feed.code == 0, feed.output()
        return orjson.loads((self.home / "truth" / feed.name / "totals.json").read_bytes())["produced"]

    def truth(self) -> Path:
        """The truth of all feeds so far, as one."""
        whole = self.home / "truth" / "whole"
        whole.mkdir(exist_ok=True)
        parts = [self.home / "truth" / feed.name for feed in self.feeds]
        for name in ("windows.jsonl", "late.jsonl", "rejected.jsonl"):
            (whole / name).write_bytes(b"".join((part / name).read_bytes() for part in parts))
        machines = [machine for part in parts for machine in orjson.loads((part / "cloud.json").read_bytes())]
        (whole / "cloud.json").write_bytes(orjson.dumps(machines))
        return whole

    # Progress

    def ends(self) -> Offsets:
        """Where every topic that a job reads ends now."""
        topics = {topic for read in self._read_by_group().values() for topic in read}
        counts = {topic.name: topic.partitions for topic in self.topics}
        wanted = {(topic, partition): 0 for topic in topics for partition in range(counts[topic])}
        return latest_offsets(self._admin, wanted)

    def lag(self, ends: Offsets) -> dict[str, int]:
        """By consumer group, how many offsets before `ends` it has not committed yet; only those behind."""
        behind = {}
        for group, topics in self._read_by_group().items():
            places = [TopicPartition(*place) for place in ends if place[0] in topics]
            missing = sum(max(0, ends[p.topic, p.partition] - max(p.offset, 0)) for p in self._committed(group, places))
            if missing:
                behind[group] = missing
        return behind

    def _committed(self, group: str, places: list[TopicPartition]) -> list[TopicPartition]:
        with open_consumer(client_config(self.settings.kafka_bootstrap), group) as consumer:
            return consumer.committed(places, timeout=10)

    def _read_by_group(self) -> dict[str, set[str]]:
        topics, name = self.topics, self.settings.query_of
        return {
            name(query): {topic.name for topic in read}
            for job in JOB_TABLE.enabled()
            for query, read in JOB_TABLE[job].reads_of(topics).items()
        }

    def catch_up(self, seconds: float = SETTLE_SECONDS) -> None:
        """Returns when every job has worked, and has read what there is now."""
        self._await(lambda: self.emitted_until() > 0, seconds, lambda: "no window is emitted")
        ends = self._patient(self.ends)
        self._await(lambda: not self.lag(ends), seconds, lambda: f"still behind: {self.lag(ends)}")

    def settle(self) -> None:
        """Returns when the last window of the feeds is emitted, and every job has read everything."""
        last = last_window_end(self.truth())
        pulse = Pulse(self.settings.kafka_bootstrap)
        try:
            self._await(lambda: self.emitted_until() >= last, SETTLE_SECONDS, lambda: "the last window is not emitted")
        finally:
            pulse.stop()
        self._await(lambda: not self.lag(self.ends()), SETTLE_SECONDS, lambda: f"behind: {self.lag(self.ends())}")

    def is_writing(self) -> bool:
        """Whether a job's transaction is open now: its records lie behind the last stable offset."""
        return self._ends(IsolationLevel.READ_COMMITTED) != self._ends(IsolationLevel.READ_UNCOMMITTED)

    def _ends(self, isolation: IsolationLevel) -> list[int]:
        topics = (self.topics[name] for name in ("events", "statistics"))
        latest = {TopicPartition(t.name, p): OffsetSpec.latest() for t in topics for p in range(t.partitions)}
        found = self._admin.list_offsets(latest, isolation_level=isolation)
        return [future.result().offset for future in found.values()]

    def begin_generation(self, name: str) -> None:
        """Stop the jobs and start them as another generation, from the beginning of the log."""
        for job in self.jobs.values():
            self.hold(job.name)
        for job in self.jobs.values():
            job.kill()
        self.settings = self.settings.model_copy(update={"generation": name})
        apply(connect(self.settings.kafka_bootstrap), self.topics)
        self.restart(*self.jobs, KAPPA_GENERATION=name)

    def emitted_until(self) -> int:
        """Up to which time, in ns, the windows of every partition have been emitted."""
        topic = self.topics["statistics"]
        watermarks = last_watermarks(self.settings.kafka_bootstrap, topic.name, tail=300)
        return min(watermarks.values()) if len(watermarks) == topic.partitions else 0

    def _await(self, condition, seconds: float, otherwise) -> None:
        def holds() -> bool:
            self.check()
            try:
                return condition()
            except (KafkaException, UserError):  # the broker is still on its way
                return False

        try:
            until(holds, seconds, "waiting for the chain", 1.0)
        except TimeoutError as error:
            raise TimeoutError(otherwise()) from error

    def _patient(self, call):
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            with suppress(KafkaException):
                return call()
            assert time.monotonic() < deadline, "the broker does not answer"


class Pulse:
    """A machine of one event a second: while it beats, event time goes on and windows close."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = make_producer(client_config(bootstrap), {"enable.idempotence": True})
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def _beat(self) -> None:
        while not self._over.wait(1):
            event = {"time_unix_nano": time.time_ns(), "machine": "pacemaker", "name": "pulse", "value": 1.0}
            self._producer.produce("telemetry.lines", orjson.dumps(event), "pacemaker")
            self._producer.poll(0)

    def stop(self) -> None:
        """Beat no more."""
        self._over.set()
        self._thread.join()
        self._producer.flush(60)


def last_window_end(truth: Path) -> int:
    """The end of the last window of a truth, in ns."""
    lines = (truth / "windows.jsonl").read_bytes().splitlines()
    return max(orjson.loads(line)["start_unix_nano"] for line in lines) + 10_000_000_000
