"""A real one-node Elasticsearch from Elastic's minimal server package."""

import json
import os
import shutil
import urllib.error
import urllib.request
from pathlib import Path

from infra.errors import UserError
from infra.jars import default_jars, fetch
from infra.jdk import ELASTICSEARCH_JAVA, find_jdk
from infra.local.server import Server

NOBODY = 65534

# Elasticsearch refuses root, so root's server runs as nobody. The one capability that it keeps lets it read and
# write below folders that only root may enter, such as a clone in /root; no_setuid_fixup makes access(2) honour it.
AS_NOBODY = (
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--securebits=+no_setuid_fixup",
    "--inh-caps=+dac_override",
    "--ambient-caps=+dac_override",
    "--",
)


class Elasticsearch(Server):
    """A one-node Elasticsearch on loopback; it takes `port` for HTTP and the next one for its transport protocol."""

    flag = "--elasticsearch-port"

    def __init__(self, home: Path, port: int, *, heap: str = "512m", jars: Path | None = None) -> None:
        self.port = port
        self.heap = heap
        self.jars = jars or default_jars()
        super().__init__("elasticsearch", home, (port, port + 1))

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def check(self) -> None:
        find_jdk(ELASTICSEARCH_JAVA, "Elasticsearch")
        fetch("elasticsearch", self.jars)
        if os.geteuid() == 0 and shutil.which("setpriv") is None:
            raise UserError("elasticsearch refuses to run as root: install setpriv (util-linux) or use another account")

    def prepare(self) -> tuple[list[str | Path], dict[str, str]]:
        distribution = self._distribution()
        configuration = self.folder / "config"
        shutil.copytree(distribution / "config", configuration, dirs_exist_ok=True)
        (configuration / "elasticsearch.yml").write_text(
            "".join(f"{key}: {json.dumps(value)}\n" for key, value in self.settings().items())
        )
        for name in ("data", "logs", "tmp"):
            (self.folder / name).mkdir(exist_ok=True)
        environment = {
            "ES_JAVA_HOME": str(find_jdk(ELASTICSEARCH_JAVA, "Elasticsearch")),
            "ES_JAVA_OPTS": f"-Xms{self.heap} -Xmx{self.heap}",
            "ES_PATH_CONF": str(configuration),
            "ES_TMPDIR": str(self.folder / "tmp"),
        }
        return [*self._as_user(), distribution / "bin" / "elasticsearch"], environment

    def settings(self) -> dict[str, object]:
        """The node's configuration: one node, loopback only, no security."""
        return {
            "cluster.name": "kappa",
            "node.name": "kappa",
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
            "network.host": "127.0.0.1",
            "http.port": self.port,
            "transport.port": self.ports[1],
            "discovery.type": "single-node",
            "xpack.security.enabled": False,
            "xpack.security.autoconfiguration.enabled": False,
            "cluster.routing.allocation.disk.threshold_enabled": False,
        }

    def ready(self) -> bool:
        """Whether the cluster answers and holds all its primary shards."""
        try:
            with urllib.request.urlopen(f"{self.address}/_cluster/health", timeout=2) as answer:
                return json.load(answer)["status"] in ("yellow", "green")
        except (urllib.error.URLError, OSError):
            return False

    def _distribution(self) -> Path:
        return next(fetch("elasticsearch", self.jars).glob("elasticsearch-*"))

    def _as_user(self) -> tuple[str, ...]:
        """The prefix of the command if this process is root's; also gives the server's folder to the user nobody."""
        if os.geteuid() != 0:
            return ()
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        return AS_NOBODY
