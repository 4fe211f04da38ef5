"""The embedded Kafka and Elasticsearch as a unit: start, stop, status."""

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

from infra.errors import UserError
from infra.jars import locked
from infra.local.elasticsearch import Elasticsearch
from infra.local.identities import Identities
from infra.local.kafka import KafkaBroker
from infra.local.server import Server
from infra.settings import InfraSettings

MINIMUM_FREE_BYTES = 2 * 1024**3
POLL_SECONDS = 0.2

Report = Callable[[str, str], None]


def _silent(_server: str, _state: str) -> None:
    pass


class LocalServers:
    """The embedded servers of one home folder; it also finds those that another process has started.

    With `secured` they ask who a client is. A home whose servers were secured once stays so.
    """

    def __init__(
        self,
        home: Path,
        *,
        kafka_port: int = 9092,
        elasticsearch_port: int = 9200,
        brokers: int = 1,
        kafka_heap: str = "512m",
        elasticsearch_heap: str = "512m",
        jars: Path | None = None,
        kafka_overrides: Mapping[str, object] | None = None,
        secured: bool = False,
    ) -> None:
        self.home = home.resolve()
        identities = Identities(self.home / "security")
        self.identities = identities if secured or identities.exist else None
        jars = (jars or self.home / "jars").resolve()
        self.kafka = [
            KafkaBroker(
                self.home,
                kafka_port,
                node=node,
                brokers=brokers,
                heap=kafka_heap,
                jars=jars,
                overrides=kafka_overrides,
                identities=self.identities,
            )
            for node in range(1, brokers + 1)
        ]
        self.elasticsearch = Elasticsearch(
            self.home, elasticsearch_port, heap=elasticsearch_heap, jars=jars, identities=self.identities
        )

    @classmethod
    def of(cls, settings: InfraSettings) -> Self:
        """The servers as the settings declare them."""
        return cls(**settings.model_dump())

    @property
    def all(self) -> Sequence[Server]:
        """Every server, in the order in which they are started."""
        return [self.elasticsearch, *self.kafka]  # the slowest to start first

    @property
    def bootstrap(self) -> str:
        """Kafka's `bootstrap.servers`."""
        return ",".join(broker.address for broker in self.kafka)

    @property
    def elasticsearch_url(self) -> str:
        """The URL of Elasticsearch's HTTP API."""
        return self.elasticsearch.address

    def up(self, report: Report = _silent) -> None:
        """Start the servers that don't run and wait until all are ready; if one fails, those started here are stopped.

        `report` gets (server, state) at each change.

        Raises:
            UserError: a busy port, a full disk, no suitable Java, data of another cluster size or of servers without
                security, a failed server.
        """
        self.home.mkdir(parents=True, exist_ok=True)
        with locked(self.home / ".infra.lock"):
            missing = [server for server in self.all if not self._runs(server)]
            self._check(missing, report)
            if self.identities:
                self.identities.create()
            try:
                for server in missing:
                    report(server.name, "starting")
                    server.spawn()
                _wait(self.all, report)
            except BaseException:
                _stop(missing)
                raise

    def down(self, wipe: bool = False) -> None:
        """Stop the servers of this home, whichever ports they were started with; `wipe` deletes their data too."""
        if not self.home.is_dir():
            return
        with locked(self.home / ".infra.lock"):
            _stop(self._known())
            if wipe:
                for server in self._known():
                    shutil.rmtree(server.folder, ignore_errors=True)
                if self.identities:
                    self.identities.remove()

    def status(self) -> list[dict[str, object]]:
        """One row a server: name, state (ready, starting or down), address, pid, log."""
        return [_row(server) for server in self._known()]

    def _known(self) -> list[Server]:
        """These servers, and further brokers of a larger cluster in the same home."""
        return [*self.all, *(KafkaBroker(self.home, 1, node=node, brokers=node) for node in self._other_nodes())]

    def _other_nodes(self) -> list[int]:
        nodes = (int(folder.name.removeprefix("kafka-")) for folder in self.home.glob("kafka-*"))
        return sorted(node for node in nodes if node > len(self.kafka))

    def _runs(self, server: Server) -> bool:
        running = server.running
        if running and running.address != server.address:
            raise UserError(f"{server.flag}: {server.name} runs at {running.address} already; `kappa infra down` first")
        return running is not None

    def _check_overlap(self) -> None:
        brokers = {port for broker in self.kafka for port in broker.ports}
        if shared := brokers.intersection(self.elasticsearch.ports):
            raise UserError(
                f"port {min(shared)}: Kafka and Elasticsearch would both take it; "
                f"move one by {KafkaBroker.flag} or {Elasticsearch.flag}"
            )

    def _check(self, missing: Sequence[Server], report: Report) -> None:
        if not missing:
            return
        free = shutil.disk_usage(self.home).free
        if free < MINIMUM_FREE_BYTES:
            raise UserError(
                f"KAPPA_HOME={self.home}: {free / 1024**3:.1f} GiB free, needs {MINIMUM_FREE_BYTES / 1024**3:.0f} GiB; "
                "free some or choose another folder"
            )
        self._check_overlap()
        for server in missing:
            server.check_ports()
        for server in missing:
            report(server.name, "fetching")
            server.check()


def _stop(servers: Sequence[Server]) -> None:
    """Stop all at once: a broker that is stopped later would wait in vain for a quorum."""
    for server in servers:
        server.terminate()
    for server in servers:
        server.stop()


def _wait(servers: Sequence[Server], report: Report) -> None:
    waiting = list(servers)
    start = time.monotonic()
    while waiting:
        for server in list(waiting):
            if not server.running or time.monotonic() - start > server.ready_seconds:
                raise server.failed()
            if server.ready():
                report(server.name, "ready")
                waiting.remove(server)
        time.sleep(POLL_SECONDS)


def _row(server: Server) -> dict[str, object]:
    running = server.running
    if running is None:
        return {"name": server.name, "state": "down", "address": server.address, "pid": None, "log": str(server.log)}
    state = "ready" if server.ready() else "starting"
    return {"name": server.name, "state": state, "address": running.address, "pid": running.pid, "log": str(server.log)}
