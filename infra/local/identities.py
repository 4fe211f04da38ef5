"""Who may speak to the embedded servers where they are secured: an authority, certificates, users with passwords.

A user is a folder of the form that KAPPA_SECRETS takes: a file for each setting, named as its variable. Whoever names
the folder there is that user.
"""

import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from infra.files import write_private
from infra.local.certificates import Authority

ADMIN = "admin"  # may do everything
ELASTIC = "elastic"  # the same, in Elasticsearch
BROKER = "kafka"  # the name in the brokers' own certificate, by which they know each other
PASSWORD = "kappa_kafka_sasl_password"
ELASTIC_PASSWORD = "kappa_elasticsearch_password"


class Identities:
    """The authority, the servers' certificate and the users of one home, below `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()

    @property
    def exist(self) -> bool:
        """Whether the servers of this home are secured."""
        return self.authority.is_file()

    @property
    def authority(self) -> Path:
        """The certificate (PEM) that clients are to trust."""
        return self.folder / "ca.crt"

    @property
    def broker(self) -> Path:
        """The brokers' key and certificate, in one PEM file as Java wants it."""
        return self.folder / f"{BROKER}.pem"

    def create(self) -> None:
        """Make the authority, the servers' certificates and the user `admin`; what is there stays."""
        if self.exist:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)  # whoever runs a server must reach its file; those of secrets are their owner's alone
        authority = Authority.create()
        certificate, key = authority.issue(BROKER)
        write_private(self.broker, key + certificate)
        authority.save(self.folder)
        folder = self.add(ADMIN)
        write_private(folder / "kappa_elasticsearch_user", ELASTIC.encode())
        write_private(folder / ELASTIC_PASSWORD, secrets.token_urlsafe(24).encode())

    def certificate(self, name: str) -> tuple[bytes, bytes]:
        """A certificate for a server, and its key."""
        return Authority.load(self.folder).issue(name)

    def elastic_password(self) -> str:
        """The password of Elasticsearch's administrator."""
        return (self.user(ADMIN) / ELASTIC_PASSWORD).read_text()

    def user(self, name: str) -> Path:
        """The folder of a user, to be named by KAPPA_SECRETS."""
        return self.folder / "users" / name

    def users(self) -> Iterator[str]:
        """The names of all users."""
        yield from sorted(path.name for path in (self.folder / "users").glob("*"))

    def password(self, name: str) -> str:
        """The password of a user."""
        return (self.user(name) / PASSWORD).read_text()

    def add(self, name: str) -> Path:
        """The folder of a user, who gets a password and a client certificate if there was none."""
        folder = self.user(name)
        if folder.is_dir():
            return folder
        fresh = folder.with_name(f".{name}")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True, mode=0o700)
        certificate, key = Authority.load(self.folder).issue(name)
        settings = {
            "kappa_kafka_security_protocol": "SASL_SSL",
            "kappa_kafka_sasl_username": name,
            PASSWORD: secrets.token_urlsafe(24),
            "kappa_kafka_ssl_ca": str(self.authority),
            "kappa_elasticsearch_ca": str(self.authority),
        }
        for file, content in settings.items():
            write_private(fresh / file, content.encode())
        # Of the listener that asks for a certificate: KAPPA_KAFKA_SSL_CERTIFICATE and KAPPA_KAFKA_SSL_KEY.
        write_private(fresh / "tls.crt", certificate)
        write_private(fresh / "tls.key", key)
        fresh.rename(folder)
        return folder

    def remove(self) -> None:
        """Delete everything, as the servers' data goes."""
        shutil.rmtree(self.folder, ignore_errors=True)
