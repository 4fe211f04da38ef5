"""The whole chain over a recorded quarter of an hour, with or without poison among what its neighbours send."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import yaml
from confluent_kafka import KafkaError, Message, Producer

from connectors.kafka.admin import apply, connect
from connectors.kafka.offsets import Log, missing
from connectors.kafka.producer import CollectorProducer, Delivered
from infra.contract.topics import DEFAULT_MAP, TopicMap, load_topics
from infra.jars import default_jars
from infra.local import LocalServers
from jobs.runtime.settings import Settings
from jobs.runtime.watermarks import last_watermarks
from jobs.table import JOBS
from ops.simulator import feed
from ops.simulator.faults import SECOND, parse
from ops.simulator.simulation import Settings as Cloud
from ops.simulator.simulation import Simulation
from tests.chaos.chain import SHORT_LIVED
from tests.chaos.processes import Job
from tests.chaos.reading import Place, Record, read_topic
from tests.hostile.accounts import is_object
from tests.hostile.cases import Case, Poison
from tests.waiting import until

START = 1_790_000_000 * SECOND
LENGTH = int(os.environ.get("KAPPA_HOSTILE_MINUTES", "10")) * 60 * SECOND
TRAIL = 180 * SECOND  # so that watermarks pass the end
FAULTS = ("cpu_hog:vm-03@+5m/2m", "silence:vm-02@+6m/2m", "log_burst:vm-04@+4m/1m")
SETTLE_SECONDS = 1200.0
START_SECONDS = 300.0
MILLI = 1_000_000  # ns


class Poisoned:
    """A sender that writes what the neighbours send, and between two of their seconds the poison of that moment."""

    def __init__(self, chain: "RecordedChain", cases: Iterable[Case]) -> None:
        self._neighbours, self._topics = CollectorProducer(chain.bootstrap, chain.fed), chain.topics
        settings = {"bootstrap.servers": chain.bootstrap, "linger.ms": 5, "message.max.bytes": 10_000_000}
        self._producer = Producer(settings)
        self._left = [(case, case.times, LENGTH // (case.times + 1)) for case in cases]
        self._number, self._next_ms = 0, 0
        self.places: dict[Place, str] = {}
        self.unusable: set[Place] = set()  # of what is no JSON object
        self.sent: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()  # by a broker, in front of the chain

    def send(self, topic: str, key: bytes, value: bytes, timestamp_ms: int, delivered: Delivered | None = None) -> None:
        if timestamp_ms >= self._next_ms:
            self._poison(timestamp_ms)
            self._next_ms = timestamp_ms + 1000
        self._neighbours.send(topic, key, value, timestamp_ms, delivered)

    def poll(self, seconds: float = 0) -> None:
        self._neighbours.poll(seconds)

    def flush(self) -> None:
        self._neighbours.flush()
        self._producer.flush(60)

    def _poison(self, now_ms: int) -> None:
        gone = now_ms * MILLI - START
        for case, times, pause in self._left:
            due = min(times, gone // pause)
            for number in range(self.sent_times(case), due):
                self._send_case(case, number, now_ms)
        self._producer.flush(60)

    def sent_times(self, case: Case) -> int:
        """How often a case has been sent."""
        return self.sent[case.name]

    def _send_case(self, case: Case, number: int, now_ms: int) -> None:
        topic = self._topics[case.topic]
        for poison in case.make(now_ms * MILLI):
            partition = self._number % topic.partitions
            self._number += 1

            def report(error: KafkaError | None, message: Message, poison: Poison = poison) -> None:
                if error is not None:
                    self.refused[case.name] += 1
                    return
                place = Place(message.topic(), message.partition(), message.offset())
                self.places[place] = case.name
                if not is_object(poison.value):
                    self.unusable.add(place)

            # By name: the sixth in order is no timestamp, and is taken without a word.
            at = max(1, now_ms + poison.shift_ms)
            self._producer.produce(topic.name, poison.value, poison.key, partition, on_delivery=report, timestamp=at)
            self._producer.poll(0)
        self.sent[case.name] = number + 1


class RecordedChain:
    """Servers and all jobs, over topics with the sender's clock: two runs of it have the same neighbours."""

    def __init__(self, home: Path, first_port: int) -> None:
        self.home = home
        self.servers = LocalServers(home, kafka_port=first_port, elasticsearch_port=first_port + 2, jars=default_jars())
        self.bootstrap = self.servers.bootstrap
        self.map_file = home / "topics.yaml"
        self.settings = Settings(
            home=home,
            kafka_bootstrap=self.bootstrap,
            elasticsearch_url=self.servers.elasticsearch_url,
            topics_file=self.map_file,
            optional_jobs=("rules",),
        )
        names = JOBS.applications(JOBS.enabled(self.settings.optional_jobs))
        self.jobs = {name: Job(name, ("run", name), self._environment(), home / f"log/{name}.log") for name in names}
        cloud = Cloud(START, LENGTH + TRAIL, machines=12, faults=tuple(parse(fault) for fault in FAULTS))
        self.simulation = Simulation(cloud)
        self.fed = self.simulation.topics()

    def _environment(self) -> Mapping[str, str]:
        return {
            "KAPPA_HOME": str(self.home),
            "KAPPA_DELTA": str(self.home / "delta"),
            "KAPPA_JARS": str(default_jars()),
            "KAPPA_TOPICS_FILE": str(self.map_file),
            "KAPPA_KAFKA_BOOTSTRAP": self.bootstrap,
            "KAPPA_ELASTICSEARCH_URL": self.servers.elasticsearch_url,
            "KAPPA_OPTIONAL_JOBS": "rules",
            "KAPPA_METRICS_PORT": "0",
            "KAPPA_TRIGGER_SECONDS": "1",
            "KAPPA_ARCHIVE_TRIGGER_SECONDS": "5",
            "JAVA_TOOL_OPTIONS": SHORT_LIVED,
        }

    @property
    def topics(self) -> TopicMap:
        return JOBS.topics_in(load_topics(self.map_file), self.settings.generation)

    def up(self) -> None:
        """Servers, topics whose records keep the time that their sender gives, jobs."""
        self.home.mkdir(parents=True)
        declared = yaml.safe_load(DEFAULT_MAP.read_text())
        declared["telemetry"]["timestamp"] = declared["topics"]["inventory"]["timestamp"] = "CreateTime"
        for settings in (
            declared["defaults"],
            declared["topics"]["statistics.early"],
            declared["topics"]["events.retry"],
        ):
            settings["retention"] = "3650d"
        self.map_file.write_text(yaml.safe_dump(declared, sort_keys=False))
        self.servers.up()
        apply(connect(self.bootstrap), self.topics)
        for name, job in self.jobs.items():
            job.start()
            if JOBS[name].uses_spark:  # one by one: else Spark may give up waiting for its workers
                until(lambda job=job: job.said('"started"'), START_SECONDS, f"{name} does not start")

    def feed(self, cases: Iterable[Case] = ()) -> Poisoned:
        """Send all that the neighbours say, and the cases between."""
        sender = Poisoned(self, cases)
        feed.run(self.simulation, sender, live=False)
        return sender

    def settle(self) -> None:
        """Returns when every window of the recorded time is through, and every job has read what there is."""
        until(self._is_through, SETTLE_SECONDS, "the chain is not through", 2.0)

    def _is_through(self) -> bool:
        for job in self.jobs.values():
            assert job.code is None, f"{job.name} ended with {job.code}: {job.output()[-900:]}"
        return all(self._reached(topic) >= START + LENGTH for topic in ("statistics", "novelties")) and not self._lag()

    def _lag(self) -> int:
        """How many records the jobs have not read yet, in all."""
        log, behind = Log(self.bootstrap), 0
        for job in JOBS.enabled(self.settings.optional_jobs):
            for query, read in JOBS[job].reads_of(self.topics).items():
                ends = log.ends([topic.name for topic in read])
                behind += missing(log.committed(self.settings.query_of(query), ends), ends)
        return behind

    def _reached(self, key: str) -> int:
        topic = self.topics[key]
        found = last_watermarks(self.bootstrap, topic.name, tail=5_000)
        return min(found.values()) if len(found) == topic.partitions else 0

    def log(self, key: str) -> list[Record]:
        """Every record of a topic."""
        return read_topic(self.bootstrap, self.topics[key].name)

    def restarts(self) -> int:
        """How many processes have ended."""
        return sum(job.code is not None for job in self.jobs.values())

    def down(self) -> None:
        """End everything."""
        for job in self.jobs.values():
            job.clean()
        self.servers.down()
