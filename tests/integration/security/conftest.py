"""A secured broker, and the environment of its users; what the tests have found, as `build/security.json`."""

import os
import ssl
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import orjson
import pytest
from confluent_kafka.admin import (
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from connectors.kafka.client import make_admin
from connectors.kafka.security import KafkaSecurity
from infra.contract.topics import load_topics
from infra.files import write_private
from infra.jars import default_jars
from infra.local.elasticsearch import Elasticsearch
from infra.local.identities import ADMIN, Identities
from infra.local.kafka import KafkaBroker
from jobs.table import JOBS
from ops.acl import broker
from ops.acl.broker import Difference
from ops.acl.principals import principals
from tests.integration.conftest import free_ports
from tests.waiting import until

REPORT = os.environ.get("KAPPA_SECURITY_REPORT")  # the file to write it into
RIGHTS = Path("build/rights.json")  # of `make test-rights`
USES_ELASTICSEARCH = {"indexer", "verify", "replay promote", "replay drop"}  # of what runs there


@dataclass
class Outcome:
    """What a command said, and how long it took."""

    code: int
    last_line: str
    seconds: float
    text: str


class Secured:
    """A secured broker of one node."""

    def __init__(self, home):
        self.identities = Identities(home / "security")
        self.identities.create()
        port = free_ports(3)
        self.broker = KafkaBroker(home, port, jars=default_jars(), identities=self.identities)
        self.bootstrap = self.broker.address

    def environment(self, user=ADMIN, **changes):
        """The variables of a user's process."""
        return {
            "KAPPA_KAFKA_BOOTSTRAP": self.bootstrap,
            "KAPPA_SECRETS": str(self.identities.user(user)),
            "KAPPA_HOME": str(self.broker.folder.parent / "home"),
            "KAPPA_JARS": str(default_jars()),
            **changes,
        }

    def certificate(self, user=ADMIN):
        """The variables that make a user show a certificate instead."""
        folder = self.identities.user(user)
        return {
            "KAPPA_KAFKA_BOOTSTRAP": self.broker.certificate_address,
            "KAPPA_KAFKA_SECURITY_PROTOCOL": "SSL",
            "KAPPA_KAFKA_SSL_CERTIFICATE": str(folder / "tls.crt"),
            "KAPPA_KAFKA_SSL_KEY": str(folder / "tls.key"),
        }

    def connection(self, user=ADMIN):
        """How a client of this process reaches it as a user."""
        security = KafkaSecurity(_secrets_dir=str(self.identities.user(user)))
        return {"bootstrap.servers": self.bootstrap, **security.client()}

    @cached_property
    def admin(self):
        return make_admin(self.connection(), {"log_level": 0})

    @contextmanager
    def shown(self, address, pem):
        """Within, the broker shows this key and certificate (PEM) at one of its addresses; it isn't restarted."""
        listener = {self.broker.address: "passwords", self.broker.certificate_address: "certificates"}[address]
        path = self.identities.folder / f"{listener}.pem"
        write_private(path, pem)
        entry = f"listener.name.{listener}.ssl.keystore.location"
        self._alter(ConfigEntry(entry, str(path), incremental_operation=AlterConfigOpType.SET))
        try:
            host, _, port = address.partition(":")
            until(lambda: ssl.get_server_certificate((host, int(port))).encode() in pem, 30, "it shows the former one")
            yield
        finally:
            self._alter(ConfigEntry(entry, None, incremental_operation=AlterConfigOpType.DELETE))

    def _alter(self, entry):
        resource = ConfigResource(ConfigResource.Type.BROKER, str(self.broker.node), incremental_configs=[entry])
        for answer in self._admin_by_certificate.incremental_alter_configs([resource]).values():
            answer.result(20)

    @cached_property
    def _admin_by_certificate(self):
        """An admin client that is let in whatever the other listener shows."""
        folder = self.identities.user(ADMIN)
        files = {"kafka_ssl_certificate": folder / "tls.crt", "kafka_ssl_key": folder / "tls.key"}
        security = KafkaSecurity(_secrets_dir=str(folder), kafka_security_protocol="SSL", **files)
        return make_admin({"bootstrap.servers": self.broker.certificate_address, **security.client()}, {"log_level": 0})

    def add(self, user, password=None):
        """Make a user that has no rights, or change its password on the broker."""
        self.identities.add(user)
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
        secret = (password or self.identities.password(user)).encode()
        change = UserScramCredentialUpsertion(user, info, secret)
        for answer in self.admin.alter_user_scram_credentials([change]).values():
            answer.result(20)

    def allow(self, user, right):
        """Give a user a right."""
        broker.create(self.admin, [Difference(user, frozenset({right}), frozenset())])

    def deny(self, user, right):
        """Take a right away from a user."""
        broker.delete(self.admin, [Difference(user, frozenset(), frozenset({right}))])

    def client(self, user):
        """An admin client of a user."""
        return make_admin(self.connection(user), {"log_level": 0})

    def kappa(self, *arguments, user=ADMIN, whole=False, **changes):
        """Run a command as a user; `whole`: with all that it has printed."""
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "ops.cli", *arguments],
            env=os.environ | self.environment(user, **changes),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        lines = [*done.stdout.splitlines(), *done.stderr.splitlines()]
        said = done.stdout if whole else ""
        return Outcome(done.returncode, lines[-1] if lines else "", time.monotonic() - began, said)


class Report:
    """What the tests have found, for `build/security.json`; what none of them has said is null there."""

    def __init__(self):
        self.facts = {"forged_rejected": None, "tenants": {}}
        self._clients, self._wrong = {}, []

    def client(self, name, *, secured_broker=None, elasticsearch=None):
        """A client of the project was let in by a server that asks who it is, and did its work there."""
        known = self._clients.setdefault(name, {"name": name, "secured_broker": None, "elasticsearch": None})
        given = {"secured_broker": secured_broker, "elasticsearch": elasticsearch}
        known.update({server: done for server, done in given.items() if done is not None})

    def wrong(self, case, outcome):
        """A command was refused for what is wrong."""
        self._wrong.append({"case": case, "seconds": round(outcome.seconds, 1), "message": outcome.last_line})

    def tenants(self, **facts):
        """Facts about tenants, by their names."""
        self.facts["tenants"] |= facts

    def forged(self, rejected):
        """Records about machines for which their writer may not speak were rejected: how many."""
        self.facts["forged_rejected"] = rejected

    def as_dict(self, *, passed):
        """The whole report; rights, and the clients of the chain, are those that `make test-rights` has reported."""
        of_rights = orjson.loads(RIGHTS.read_bytes()) if RIGHTS.is_file() else {}
        applications = {right.partition(":")[0] for right in of_rights.get("rights", ())}
        for name in applications | of_rights.get("commands", {}).keys():
            self.client(name, secured_broker=True, elasticsearch=True if name in USES_ELASTICSEARCH else None)
        return {
            "passed": passed,
            "clients": [self._clients[name] for name in sorted(self._clients)],
            "rights": rights(of_rights) if of_rights else None,
            "wrong": self._wrong,
            **self.facts,
        }


def rights(found):
    """How many rights there are, and whether each of them was found to be needed."""
    granted = principals({"live": (JOBS.names(), load_topics())}, trial=True)
    wanted = {f"{name}: {right}" for name, own in granted.items() for right in own}
    shown = found.get("rights", {}).keys() | found.get("rights_of_people", {}).keys()
    return {"granted": len(wanted), "each_needed": bool(found.get("passed")) and wanted <= shown}


@pytest.fixture(scope="session")
def report(request):
    """What the tests have found; it is written at the end, where somebody asks for it."""
    found = Report()
    yield found
    if REPORT:
        path = Path(REPORT)
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = found.as_dict(passed=request.session.testsfailed == 0)
        path.write_bytes(orjson.dumps(facts, option=orjson.OPT_INDENT_2))


@pytest.fixture(scope="session")
def secured(tmp_path_factory):
    made = Secured(tmp_path_factory.mktemp("secured"))
    made.broker.spawn()
    until(made.broker.ready, 120, "the secured broker is not ready")
    assert made.kappa("topics", "apply").code == 0
    yield made
    made.broker.stop()


@pytest.fixture(scope="session")
def secured_elasticsearch(secured):
    """An Elasticsearch of the same users."""
    home = secured.broker.folder.parent
    server = Elasticsearch(home, free_ports(2), jars=default_jars(), identities=secured.identities)
    server.spawn()
    until(server.ready, 180, "the secured Elasticsearch is not ready")
    yield server
    server.stop()
