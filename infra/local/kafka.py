"""A real Kafka broker (KRaft: broker and controller in one process) from Maven's jars."""

import socket
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.errors import UserError
from infra.jars import default_jars, fetch
from infra.jdk import KAFKA_JAVA, find_jdk
from infra.local.server import Server
from infra.processes import run

CLUSTER_ID = "a2FwcGEta2FwcGEta2FwcA"  # 16 bytes, base64: "kappa-kappa-kapp"
LOGGING = Path(__file__).with_name("log4j2.properties")
TEN_YEARS_MINUTES = 10 * 365 * 24 * 60  # no topic here keeps records longer
TEN_MEBIBYTES = 10 * 1024 * 1024


class KafkaBroker(Server):
    """Broker `node` (1-based) of a cluster of `brokers` on loopback.

    The cluster takes 2 * brokers ports from `port` on: first those of clients, then those of the controllers.
    `overrides` are broker settings that go before ours.
    """

    flag = "--kafka-port"

    def __init__(
        self,
        home: Path,
        port: int,
        *,
        node: int = 1,
        brokers: int = 1,
        heap: str = "512m",
        jars: Path | None = None,
        overrides: Mapping[str, object] | None = None,
    ) -> None:
        self.node = node
        self.brokers = brokers
        self.port = port + node - 1
        self.heap = heap
        self.jars = jars or default_jars()
        self.overrides = overrides or {}
        self._first_port = port
        self._admin: AdminClient | None = None
        super().__init__(f"kafka-{node}", home, (self.port, self.port + brokers))

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def check(self) -> None:
        find_jdk(KAFKA_JAVA, "Kafka")
        fetch("kafka", self.jars)
        made_for = self.folder / "brokers"
        if made_for.is_file() and int(made_for.read_text()) != self.brokers:
            raise UserError(
                f"brokers={self.brokers}: the data in {self.folder.parent} was written by {made_for.read_text()}; "
                "use --brokers as before, another KAPPA_HOME, or `kappa infra down --wipe`"
            )

    def prepare(self) -> tuple[list[str | Path], dict[str, str]]:
        self.folder.mkdir(parents=True, exist_ok=True)
        configuration = self.folder / "server.properties"
        configuration.write_text("".join(f"{key}={value}\n" for key, value in self.properties().items()))
        (self.folder / "brokers").write_text(str(self.brokers))
        if not (self.folder / "data" / "meta.properties").is_file():
            self._format(configuration)
        return [*self._java(self.heap), "kafka.Kafka", configuration], {}

    def properties(self) -> dict[str, object]:
        """The broker's configuration: replicated three times where there are three, small where there is one."""
        replicas = min(3, self.brokers)
        in_sync = 2 if replicas == 3 else 1
        controllers = [self._first_port + self.brokers + index for index in range(self.brokers)]
        return {
            "process.roles": "broker,controller",
            "node.id": self.node,
            "controller.quorum.voters": ",".join(
                f"{node}@127.0.0.1:{port}" for node, port in enumerate(controllers, start=1)
            ),
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{controllers[self.node - 1]}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": self.folder / "data",
            "auto.create.topics.enable": "false",
            "default.replication.factor": replicas,
            "min.insync.replicas": in_sync,
            "offsets.topic.replication.factor": replicas,
            "offsets.topic.num.partitions": 8,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": in_sync,
            "transaction.state.log.num.partitions": 8,
            "transaction.max.timeout.ms": 15 * 60 * 1000,
            "offsets.retention.minutes": TEN_YEARS_MINUTES,
            "group.initial.rebalance.delay.ms": 0,
            "message.max.bytes": TEN_MEBIBYTES,
            "replica.fetch.max.bytes": TEN_MEBIBYTES,
            **self.overrides,
        }

    def ready(self) -> bool:
        """Whether the broker answers and sees its whole cluster."""
        if not _listening(self.port):
            return False
        self._admin = self._admin or AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        try:
            return len(self._admin.list_topics(timeout=2).brokers) == self.brokers
        except KafkaException:
            return False

    def _format(self, configuration: Path) -> None:
        command = [*self._java("128m"), "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", configuration]
        code, output = run([*command, "--ignore-formatted"])
        if code:
            raise UserError(f"{self.name}: could not format {self.folder}: {output.strip().splitlines()[-1]}")

    def _java(self, heap: str) -> list[str | Path]:
        return [
            find_jdk(KAFKA_JAVA, "Kafka") / "bin" / "java",
            f"-Xmx{heap}",
            "-XX:+ExitOnOutOfMemoryError",
            f"-Dlog4j2.configurationFile={LOGGING}",
            "-cp",
            f"{fetch('kafka', self.jars)}/*",
        ]


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
