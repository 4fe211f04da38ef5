"""A real Kafka broker (KRaft: broker and controller in one process) from Maven's jars."""

import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from infra.errors import UserError
from infra.files import write_private
from infra.jars import default_jars, fetch
from infra.jdk import KAFKA_JAVA, find_jdk
from infra.local.identities import ADMIN, BROKER, Identities
from infra.local.server import Server
from infra.processes import run

CLUSTER_ID = "a2FwcGEta2FwcGEta2FwcA"  # 16 bytes, base64: "kappa-kappa-kapp"
LOGGING = Path(__file__).with_name("log4j2.properties")
TEN_YEARS_MINUTES = 10 * 365 * 24 * 60  # no topic here keeps records longer
TEN_MEBIBYTES = 10 * 1024 * 1024


class KafkaBroker(Server):
    """Broker `node` (1-based) of a cluster of `brokers` on loopback.

    The cluster takes 2 * brokers ports from `port` on: first those of clients, then those of the controllers. With
    `identities` it is secured, and takes as many again, on which a client shows a certificate instead of a password.
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
        identities: Identities | None = None,
    ) -> None:
        self.node = node
        self.brokers = brokers
        self.port = port + node - 1
        self.heap = heap
        self.jars = jars or default_jars()
        self.overrides = overrides or {}
        self.identities = identities
        self._first_port = port
        self._admin: AdminClient | None = None
        super().__init__(f"kafka-{node}", home, tuple(self.port + brokers * role for role in range(self._roles)))

    @property
    def _roles(self) -> int:
        """How many ports it listens on: for clients, for controllers, and for those with a certificate."""
        return 3 if self.identities else 2

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def certificate_address(self) -> str:
        """Where a secured broker asks for a certificate."""
        return f"127.0.0.1:{self.port + 2 * self.brokers}"

    def check(self) -> None:
        find_jdk(KAFKA_JAVA, "Kafka")
        fetch("kafka", self.jars)
        if self.identities and not self.identities.exist and self._is_formatted:
            raise UserError(
                f"--secured: the data in {self.folder.parent} is that of servers without security; use another "
                "KAPPA_HOME, or `kappa infra down --wipe`"
            )
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
        if not self._is_formatted:
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
            **self._listeners(f"CONTROLLER://127.0.0.1:{controllers[self.node - 1]}"),
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

    def _listeners(self, controller: str) -> dict[str, object]:
        if self.identities is None:
            return {"listeners": f"PLAINTEXT://{self.address},{controller}"}
        passwords, login = (
            "listener.name.passwords",
            "org.apache.kafka.common.security.scram.ScramLoginModule required;",
        )
        return {
            "listeners": f"PASSWORDS://{self.address},CERTIFICATES://{self.certificate_address},{controller}",
            "listener.security.protocol.map": "PASSWORDS:SASL_SSL,CERTIFICATES:SSL,CONTROLLER:SSL",
            # Brokers and controllers know each other by their certificate: there is no password in this file.
            "inter.broker.listener.name": "CERTIFICATES",
            f"{passwords}.sasl.enabled.mechanisms": "SCRAM-SHA-512",
            f"{passwords}.scram-sha-512.sasl.jaas.config": login,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": self.identities.broker,
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.identities.authority,
            "listener.name.certificates.ssl.client.auth": "required",
            "listener.name.controller.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^CN=([^,]*).*$/$1/",
            # Whoever has no rights may do nothing: `allow.everyone.if.no.acl.found` is false by default.
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{ADMIN};User:{BROKER}",
        }

    def ready(self) -> bool:
        """Whether the broker answers and sees its whole cluster."""
        if not _listening(self.port):
            return False
        self._admin = self._admin or AdminClient({"bootstrap.servers": self.address, "log_level": 0, **self._login()})
        try:
            return len(self._admin.list_topics(timeout=2).brokers) == self.brokers
        except KafkaException:
            return False

    def _login(self) -> dict[str, Any]:
        if self.identities is None:
            return {}
        return {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": ADMIN,
            "sasl.password": self.identities.password(ADMIN),
            "ssl.ca.location": str(self.identities.authority),
        }

    @property
    def _is_formatted(self) -> bool:
        return (self.folder / "data" / "meta.properties").is_file()

    def _format(self, configuration: Path) -> None:
        arguments: list[str | Path] = ["format", "-t", CLUSTER_ID, "-c", configuration, "--ignore-formatted"]
        if self.identities:
            user = f"name={ADMIN},password={self.identities.password(ADMIN)}"
            arguments += ["--add-scram", f"SCRAM-SHA-512=[{user}]"]
        java, *options = self._java("128m")
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            # Java reads its command line from a file: everybody sees that of a process, with the password.
            file = Path(folder) / "arguments"
            quoted = (_quoted(argument) for argument in (*options, "kafka.tools.StorageTool", *arguments))
            write_private(file, "\n".join(quoted).encode())
            code, output = run([java, f"@{file}"])
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


def _quoted(argument: str | Path) -> str:
    """An argument as a file of Java's arguments has it."""
    escaped = str(argument).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _listening(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
