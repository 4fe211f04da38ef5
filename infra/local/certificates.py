"""A certificate authority for the embedded servers, and the certificates that it signs: PEM files of one folder."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from infra.files import write_private

VALID = timedelta(days=3650)  # the servers are for trials: nobody should have to renew these
# A clock that is a little behind the one that signed.
LEEWAY = timedelta(minutes=5)

Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Authority:
    """A certificate authority: its certificate, which clients trust, and the key that signs."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @classmethod
    def create(cls, name: str = "kappa") -> Self:
        """A new authority, trusted by nobody yet."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _name(f"{name} authority")
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
            data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = (
            _certificate(subject, subject, key.public_key(), VALID)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        )
        return cls(builder.sign(key, hashes.SHA256()), key)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """The authority that `save` has written."""
        key = serialization.load_pem_private_key((folder / "ca.key").read_bytes(), None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        return cls(x509.load_pem_x509_certificate((folder / "ca.crt").read_bytes()), key)

    def save(self, folder: Path) -> None:
        """Write `ca.crt` and `ca.key`."""
        write_private(folder / "ca.key", _key_pem(self.key))
        (folder / "ca.crt").write_bytes(_certificate_pem(self.certificate))

    def issue(self, name: str, valid: timedelta = VALID, key: Key | None = None) -> tuple[bytes, bytes]:
        """A certificate for `name` on this machine, for servers and clients, and its key (PKCS#8), both as PEM.

        A negative `valid` makes one that has expired. Without `key` it has a new one, of an elliptic curve.
        """
        key = key or ec.generate_private_key(ec.SECP256R1())
        names = [x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))]
        uses = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        builder = (
            _certificate(_name(name), self.certificate.subject, key.public_key(), valid)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName(names), critical=False)
            .add_extension(x509.ExtendedKeyUsage(uses), critical=False)
            .add_extension(authority, critical=False)
        )
        return _certificate_pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key)


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey | rsa.RSAPublicKey, valid: timedelta
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + valid
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(datetime.now(UTC), end) - LEEWAY)
        .not_valid_after(end)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _certificate_pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: Key) -> bytes:
    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
