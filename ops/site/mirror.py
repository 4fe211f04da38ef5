"""What MirrorMaker 2 is told, so that a centre's Kafka gets what the machines and people of a site say.

Topics keep their names, records their partition, key, headers and Kafka timestamp: whether an event is late is decided
by the clock of the broker that it came to first. What jobs write is not mirrored: the jobs of the centre make it anew.
Of an edge site it is the other way round: only what its jobs have found goes to the centre.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

from infra.contract import dead_letters
from infra.contract.topics import LARGEST_MESSAGE_BYTES, Topic, TopicMap
from infra.errors import UserError
from jobs.table import JOBS

CENTRE = "centre"
SITE = r"[a-z0-9][a-z0-9-]{0,30}"

_BROKERS_DEFAULT = -1  # replicas of a topic
# Of the connector that reads the site and writes to the centre.
_CONNECTOR: Mapping[str, object] = {
    "replication.policy.class": "org.apache.kafka.connect.mirror.IdentityReplicationPolicy",
    "replication.factor": _BROKERS_DEFAULT,
    "refresh.topics.interval.seconds": 60,
    # The centre's topics have declarations of their own (`kappa site topics`), and its users rights of their own.
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    # So it needs no right to write on the site.
    "offset-syncs.topic.location": "target",
    "offset-syncs.topic.replication.factor": _BROKERS_DEFAULT,
    "consumer.isolation.level": "read_committed",
}
# Of the workers that run it, which keep their positions at the centre.
_WORKER: Mapping[str, object] = {
    "exactly.once.source.support": "enabled",
    # When a worker is killed, another takes its tasks at once.
    "scheduled.rebalance.max.delay.ms": 0,
    "config.storage.replication.factor": _BROKERS_DEFAULT,
    "offset.storage.replication.factor": _BROKERS_DEFAULT,
    "status.storage.replication.factor": _BROKERS_DEFAULT,
    "producer.max.request.size": LARGEST_MESSAGE_BYTES,
    "producer.compression.type": "lz4",
}


@dataclass(frozen=True)
class Mirror:
    """From one site to the centre.

    Attributes:
        site: its name.
        source: the addresses of its brokers.
        target: those of the centre's.
        tasks: that share the partitions.

    Raises:
        UserError: the name can't be one, or both are the same brokers.
    """

    site: str
    source: str
    target: str
    tasks: int = 4

    def __post_init__(self) -> None:
        check_site(self.site)
        if {*self.source.split(",")} & {*self.target.split(",")}:
            raise UserError(f"--to {self.target}: are brokers of the site itself; give those of the centre")


def check_site(name: str) -> None:
    """Raises UserError if it can't be a site's name."""
    if not re.fullmatch(SITE, name) or name == CENTRE:
        raise UserError(f"site {name!r}: use up to 31 lower-case letters, digits and hyphens, and not {CENTRE!r}")


def mirrored(topics: TopicMap) -> list[Topic]:
    """The topics that go to a centre: telemetry, control events and the inventory."""
    return [*topics.telemetry, topics["inventory"]]


def findings(topics: TopicMap) -> list[Topic]:
    """The topics that go from an edge site to a centre: what its jobs have found. Its dead letters stay there.

    Of what jobs write to Kafka the archive keeps the fields of the findings alone (`archive: parsed`).
    """
    written = {key for job in JOBS if job.sink == "kafka" for key in job.writes} - {dead_letters.TOPIC}
    return [topic for key, topic in topics.topics.items() if key in written and topic.archive == "parsed"]


def everything(topics: TopicMap) -> list[Topic]:
    """The topics that go to a cluster to which the whole chain is moved; the markers of its sinks do not."""
    return [topic for key, topic in topics.topics.items() if key != "sink.progress"]


def properties(mirror: Mirror, topics: Iterable[Topic], port: int) -> str:
    """The file for `connect-mirror-maker.sh`; its workers talk to each other on `port` of the loopback."""
    flow = f"{mirror.site}->{CENTRE}"
    lines = {
        "clusters": f"{mirror.site}, {CENTRE}",
        f"{mirror.site}.bootstrap.servers": mirror.source,
        f"{CENTRE}.bootstrap.servers": mirror.target,
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://127.0.0.1:{port}",
        "tasks.max": mirror.tasks,
        # Otherwise it would write them to the site, too.
        "emit.heartbeats.enabled": "false",
        "emit.checkpoints.enabled": "false",
        "heartbeats.topic.replication.factor": _BROKERS_DEFAULT,
        "checkpoints.topic.replication.factor": _BROKERS_DEFAULT,
        f"{flow}.enabled": "true",
        f"{flow}.topics": ", ".join(map(_pattern, topics)),
        **{f"{flow}.{name}": value for name, value in _CONNECTOR.items()},
        **{f"{CENTRE}.{name}": value for name, value in _WORKER.items()},
    }
    # In a file of properties a backslash must be written twice.
    return "".join(f"{name} = {value}\n".replace("\\", "\\\\") for name, value in lines.items())


def strimzi(mirror: Mirror, topics: Iterable[Topic]) -> str:
    """The same as a KafkaMirrorMaker2 of Strimzi's operator."""
    own = f"mirror-{mirror.site}"
    storage = {f"{kind}StorageTopic": f"__{own}-{kind}" for kind in ("config", "offset", "status")}
    target = {"alias": CENTRE, "bootstrapServers": mirror.target, "groupId": own, **storage, "config": {**_WORKER}}
    flow = {
        "source": {"alias": mirror.site, "bootstrapServers": mirror.source},
        "sourceConnector": {"tasksMax": mirror.tasks, "config": {**_CONNECTOR}},
        "topicsPattern": "|".join(map(_pattern, topics)),
    }
    resource = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": "KafkaMirrorMaker2",
        "metadata": {"name": own},
        "spec": {"replicas": 1, "target": target, "mirrors": [flow]},
    }
    return yaml.safe_dump(resource, sort_keys=False)


def _pattern(topic: Topic) -> str:
    return re.escape(topic.name)
