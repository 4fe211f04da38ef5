"""Reads certificates and keys from PEM files. What can't be used is a ValueError that names the setting."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import serialization


def certificates(variable: str, path: Path) -> list[x509.Certificate]:
    """The certificates of a file; the first one is its owner's."""
    content = _content(variable, path)
    try:
        return x509.load_pem_x509_certificates(content)
    except ValueError:
        raise ValueError(f"{variable}={path}: holds no certificate in PEM form") from None


def private_key(variable: str, path: Path) -> Any:
    """The key of a file, in PKCS#1 or PKCS#8, without a password."""
    content = _content(variable, path)
    try:
        return serialization.load_pem_private_key(content, None)
    except (TypeError, ValueError):
        raise ValueError(f"{variable}={path}: holds no key in PEM form, or one with a password") from None


def check_pair(certificate: tuple[str, Path], key: tuple[str, Path]) -> None:
    """Raises ValueError if the certificate has expired, or the key is another's. Both with their variables."""
    own, *_ = certificates(*certificate)
    if (end := own.not_valid_after_utc) < datetime.now(UTC):
        raise ValueError(f"{certificate[0]}={certificate[1]}: expired at {end:%Y-%m-%d %H:%M} UTC")
    if private_key(*key).public_key() != own.public_key():
        raise ValueError(f"{key[0]}={key[1]}: is not the key of the certificate")


def _content(variable: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{variable}={path}: can't be read ({error.strerror})") from None
