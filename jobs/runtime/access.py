"""How a job's HTTP server shows who it is, and who may ask it: a certificate and a token, if the settings name them."""

import hmac
import re
import ssl
import threading
from pathlib import Path
from typing import NamedTuple, Self

import structlog

from infra.errors import UserError
from infra.pem import check_pair
from jobs.runtime.settings import Settings

_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]{16,}=*")  # what RFC 6750 lets a header carry
# Of an answer to who has no token.
UNAUTHORIZED = "needs the header Authorization: Bearer TOKEN\n"
CHALLENGE = {"WWW-Authenticate": 'Bearer realm="kappa"'}

log = structlog.get_logger()


class Token:
    """The token that a file holds, read each time: a changed one holds at once."""

    def __init__(self, file: Path) -> None:
        """Raises UserError if the file holds none."""
        self._file = file
        if self.present() is None:
            raise UserError(
                f"KAPPA_METRICS_TOKEN_FILE={file}: can't be read, or holds no token, which is 16 or more of "
                "A-Z a-z 0-9 . _ ~ + / -; make one by `openssl rand -hex 32`"
            )

    def present(self) -> str | None:
        """The token as the file has it now; None while it has none."""
        try:
            text = self._file.read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return text if _TOKEN.fullmatch(text) else None

    def is_given_by(self, authorization: str | None) -> bool:
        """Whether the header of a request has it. While the file has none, no request does."""
        scheme, _, given = (authorization or "").partition(" ")
        expected = self.present()
        # In constant time: how long a wrong one takes says nothing about the right one.
        return (
            expected is not None
            and scheme.lower() == "bearer"
            and hmac.compare_digest(given.encode(), expected.encode())
        )


class ServerCertificate:
    """The certificate and key of a server. New connections get those that the files have then."""

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises UserError if they can't be used."""
        self._certificate, self._key = certificate, key
        self._lock = threading.Lock()
        self._versions = self._present_versions()
        try:
            self._context = self._loaded()
        except (OSError, ValueError) as error:
            raise UserError(str(error)) from None

    def context(self) -> ssl.SSLContext:
        """For the next connection. While the files can't be used, the former certificate is."""
        with self._lock:
            versions = self._present_versions()
            if versions != self._versions:
                self._versions = versions
                self._renew()
            return self._context

    def _renew(self) -> None:
        try:
            self._context = self._loaded()
        except (OSError, ValueError) as error:  # such as of a certificate whose key isn't there yet
            log.warning("the former certificate is kept", reason=str(error))
        else:
            log.info("certificate renewed", file=str(self._certificate))

    def _loaded(self) -> ssl.SSLContext:
        check_pair(("KAPPA_METRICS_CERTIFICATE", self._certificate), ("KAPPA_METRICS_KEY", self._key))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(self._certificate, self._key)
        except ssl.SSLError as error:  # a key that is too short, for example
            raise ValueError(f"KAPPA_METRICS_CERTIFICATE={self._certificate}: {error.reason}; give another") from None
        return context

    def _present_versions(self) -> tuple[object, ...]:
        return tuple(map(_version, (self._certificate, self._key)))


class Access(NamedTuple):
    """Certificate and token of the server, each None if the settings name none."""

    certificate: ServerCertificate | None
    token: Token | None

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Raises UserError naming the file that can't be used."""
        certificate, key, token = settings.metrics_certificate, settings.metrics_key, settings.metrics_token_file
        return cls(
            ServerCertificate(certificate, key) if certificate and key else None, Token(token) if token else None
        )

    def is_granted_to(self, authorization: str | None) -> bool:
        """Whether a request with this header may have what isn't for everybody."""
        return self.token is None or self.token.is_given_by(authorization)


def _version(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
