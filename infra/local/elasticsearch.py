"""A real one-node Elasticsearch from Elastic's minimal server package."""

import base64
import json
import os
import shutil
import ssl
import urllib.error
import urllib.request
from pathlib import Path

from infra.errors import UserError
from infra.files import write_private
from infra.jars import default_jars, fetch
from infra.jdk import ELASTICSEARCH_JAVA, find_jdk
from infra.local.identities import ELASTIC, Identities
from infra.local.server import Server
from infra.processes import run

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
    """A one-node Elasticsearch on loopback; it takes `port` for HTTP and the next one for its transport protocol.

    With `identities` it speaks HTTPS, and asks who a client is.
    """

    flag = "--elasticsearch-port"

    def __init__(
        self,
        home: Path,
        port: int,
        *,
        heap: str = "512m",
        jars: Path | None = None,
        identities: Identities | None = None,
    ) -> None:
        self.port = port
        self.heap = heap
        self.jars = jars or default_jars()
        self.identities = identities
        super().__init__("elasticsearch", home, (port, port + 1))

    @property
    def address(self) -> str:
        return f"{'https' if self.identities else 'http'}://127.0.0.1:{self.port}"

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
        if self.identities:
            self._write_secrets(self.identities, configuration, environment)
        return [*self._as_user(), distribution / "bin" / "elasticsearch"], environment

    def settings(self) -> dict[str, object]:
        """The node's configuration: one node, loopback only."""
        encryption = {
            "xpack.security.http.ssl.enabled": True,
            "xpack.security.http.ssl.key": "http.key",
            "xpack.security.http.ssl.certificate": "http.crt",
        }
        return {
            "cluster.name": "kappa",
            "node.name": "kappa",
            "path.data": str(self.folder / "data"),
            "path.logs": str(self.folder / "logs"),
            "network.host": "127.0.0.1",
            "http.port": self.port,
            "transport.port": self.ports[1],
            "discovery.type": "single-node",
            "xpack.security.enabled": self.identities is not None,
            **(encryption if self.identities else {}),
            "xpack.security.autoconfiguration.enabled": False,
            "cluster.routing.allocation.disk.threshold_enabled": False,
        }

    def ready(self) -> bool:
        """Whether the cluster answers and holds all its primary shards."""
        try:
            request = urllib.request.Request(f"{self.address}/_cluster/health", headers=self._login())
            with urllib.request.urlopen(request, timeout=2, context=self._trust()) as answer:
                return json.load(answer)["status"] in ("yellow", "green")
        except (urllib.error.URLError, OSError):
            return False

    def _login(self) -> dict[str, str]:
        if self.identities is None:
            return {}
        login = f"{ELASTIC}:{self.identities.elastic_password()}"
        return {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}

    def _trust(self) -> ssl.SSLContext | None:
        return ssl.create_default_context(cafile=str(self.identities.authority)) if self.identities else None

    def _write_secrets(self, identities: Identities, configuration: Path, environment: dict[str, str]) -> None:
        """The certificate with its key, and the password of the user `elastic`, which holds until it is changed."""
        for name, content in zip(("http.crt", "http.key"), identities.certificate(self.name), strict=True):
            write_private(configuration / name, content)
        if (configuration / "elasticsearch.keystore").is_file():
            return
        tool = self._distribution() / "bin" / "elasticsearch-keystore"
        code, output = run([tool, "create"], environment)
        if not code:
            code, output = run(
                [tool, "add", "-x", "-f", "bootstrap.password"], environment, identities.elastic_password()
            )
        if code:
            raise UserError(f"{self.name}: could not write its keystore: {output.strip().splitlines()[-1]}")

    def _distribution(self) -> Path:
        return next(fetch("elasticsearch", self.jars).glob("elasticsearch-*"))

    def _as_user(self) -> tuple[str, ...]:
        """The prefix of the command if this process is root's; also gives the server's folder to the user nobody."""
        if os.geteuid() != 0:
            return ()
        for path in (self.folder, *self.folder.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        return AS_NOBODY
