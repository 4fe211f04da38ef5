"""What the HTTP server of a job is served with in tests: a certificate, its key and a token, as files."""

from pathlib import Path

from infra.local.certificates import Authority

TOKEN = "0123456789abcdef-of-a-test"


class Files:
    """An authority, a certificate that it signed, and a token, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.ca, self.certificate, self.key = (folder / name for name in ("ca.crt", "tls.crt", "tls.key"))
        self.token = folder / "token"
        self.authority = Authority.create()
        self.authority.save(folder)
        self.renew("first")
        self.token.write_text(f"{TOKEN}\n")

    def renew(self, name: str) -> None:
        """Another certificate with another key, for the subject `name`."""
        for file, content in zip((self.certificate, self.key), self.authority.issue(name), strict=True):
            file.write_bytes(content)

    @property
    def tls(self) -> dict[str, Path]:
        """The settings of a server with the certificate, and of those who ask it."""
        return {"metrics_certificate": self.certificate, "metrics_key": self.key, "metrics_ca": self.ca}
