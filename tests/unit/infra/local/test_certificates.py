import ssl
from datetime import timedelta

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from infra.files import write_private
from infra.local.certificates import Authority


@pytest.fixture
def files(tmp_path):
    """Writes a certificate with its key, in one file."""

    def write(authority, name="kafka", **valid):
        path = tmp_path / f"{name}.pem"
        write_private(path, b"".join(authority.issue(name, **valid)))
        return path

    return write


def handshake(trusted, server):
    """What a client says that trusts an authority, to a server with this certificate; None if it is satisfied."""
    client, broker = ssl.create_default_context(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.load_verify_locations(cadata=trusted.certificate.public_bytes(Encoding.PEM).decode())
    broker.load_cert_chain(server)
    to_broker, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = (
        client.wrap_bio(to_client, to_broker, server_hostname="127.0.0.1"),
        broker.wrap_bio(to_broker, to_client, server_side=True),
    )
    for _ in range(4):
        for side in sides:
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError as error:
                return error.verify_message
    return None


def test_what_the_authority_signed_is_trusted_by_whoever_trusts_it(files):
    authority, other = Authority.create(), Authority.create()
    assert handshake(authority, files(authority)) is None
    assert handshake(other, files(authority)) == "unable to get local issuer certificate"


def test_one_that_has_expired_is_not(files):
    authority = Authority.create()
    assert handshake(authority, files(authority, valid=-timedelta(days=1))) == "certificate has expired"


def test_a_saved_authority_signs_on(tmp_path, files):
    authority = Authority.create()
    authority.save(tmp_path)
    assert handshake(authority, files(Authority.load(tmp_path))) is None
