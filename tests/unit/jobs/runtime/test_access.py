"""The jobs' HTTP server with a certificate and a token: what it serves to whom, and what it refuses to start with."""

import os
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from typer.testing import CliRunner

from infra.errors import UserError
from jobs.runtime.access import Access, Token
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.settings import Settings, load_settings
from ops.commands import run
from tests.unit.jobs.runtime.served import TOKEN, Files

WRONG = "0123456789abcdef-of-another"


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


class Asked:
    """Answers one question."""

    paths = ("/state",)

    def answer(self, path, arguments):
        return {"of": arguments["machine"]}


def serve(**settings):
    return MetricsServer(Settings(metrics_port=0, **settings), lambda: "not running: detector", Asked())


def get(url, path, *, token=None, context=None):
    request = urllib.request.Request(url.removesuffix("/metrics") + path)
    if token:
        request.add_header("Authorization", token)
    try:
        with urllib.request.urlopen(request, timeout=10, context=context) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.read().decode()


def port(url):
    return urlsplit(url).port


def subject(url, files):
    """To whom the certificate that the server shows now was issued."""
    context = ssl.create_default_context(cafile=files.ca)
    with (
        socket.create_connection(("127.0.0.1", port(url)), timeout=10) as connection,
        context.wrap_socket(connection, server_hostname="127.0.0.1") as secured,
    ):
        shown = x509.load_der_x509_certificate(secured.getpeercert(binary_form=True))
    return shown.subject.rfc4514_string()


@pytest.mark.parametrize(
    "header", [None, TOKEN, f"Basic {TOKEN}", "Bearer", f"Bearer {WRONG}", f"Bearer {TOKEN[:-1]}", "Bearer é"]
)
@pytest.mark.parametrize("path", ["/metrics", "/state?machine=vm-1", "/nothing"])
def test_without_the_token_nothing_is_told(files, path, header):
    with serve(metrics_token_file=files.token) as server:
        status, text = get(server.url, path, token=header and header.encode())
    assert (status, text) == (401, "needs the header Authorization: Bearer TOKEN\n")


def test_a_refusal_says_how_to_ask(files):
    with serve(metrics_token_file=files.token) as server, pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(server.url, timeout=10)
    assert refused.value.headers["WWW-Authenticate"] == 'Bearer realm="kappa"'


@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
def test_with_the_token_all_is_told(files, scheme):
    header = f"{scheme} {TOKEN}"
    with serve(metrics_token_file=files.token) as server:
        assert "kappa_build_info" in get(server.url, "/metrics", token=header)[1]
        assert get(server.url, "/state?machine=vm-1", token=header) == (200, '{"of":"vm-1"}')
        assert get(server.url, "/nothing", token=header)[0] == 404


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_probes_need_no_token_and_learn_no_reason(files, path):
    with serve(metrics_token_file=files.token) as server:
        assert get(server.url, path) == (503, "not ok\n")
        assert get(server.url, path, token=f"Bearer {TOKEN}") == (503, "not running: detector\n")


def test_a_changed_token_holds_at_once_and_while_there_is_none_nobody_is_let_in(files):
    token = Token(files.token)
    assert token.is_given_by(f"Bearer {TOKEN}")
    files.token.write_text(WRONG)
    assert token.is_given_by(f"Bearer {WRONG}") and not token.is_given_by(f"Bearer {TOKEN}")
    for gone in (lambda: files.token.write_text(""), files.token.unlink):
        gone()
        assert not token.is_given_by("Bearer ") and not token.is_given_by("Bearer None")


def test_with_a_certificate_it_speaks_https_only(files):
    context = ssl.create_default_context(cafile=files.ca)
    with serve(**files.tls) as server:
        assert server.url.startswith("https://127.0.0.1:")
        assert get(server.url, "/healthz", context=context) == (503, "not running: detector\n")
        with pytest.raises(OSError):
            get(server.url.replace("https", "http"), "/healthz")
        with pytest.raises(urllib.error.URLError, match="CERTIFICATE_VERIFY_FAILED"):
            get(server.url, "/healthz", context=ssl.create_default_context())


def test_less_than_tls_1_2_is_refused(files):
    certificate = Access.of(Settings(**files.tls)).certificate
    files.renew("second")
    assert certificate.context().minimum_version == ssl.TLSVersion.TLSv1_2


def test_one_that_does_not_shake_hands_holds_up_nobody(files):
    with serve(**files.tls) as server, socket.create_connection(("127.0.0.1", port(server.url)), timeout=10):
        assert subject(server.url, files) == "CN=first"


def test_a_renewed_certificate_is_shown_without_a_restart_and_a_half_renewed_one_is_not(files):
    with serve(**files.tls) as server:
        assert subject(server.url, files) == "CN=first"
        certificate, key = files.authority.issue("second")
        files.certificate.write_bytes(certificate)
        assert subject(server.url, files) == "CN=first"  # its key isn't there yet
        files.key.write_bytes(key)
        assert subject(server.url, files) == "CN=second"
        files.certificate.unlink()
        assert subject(server.url, files) == "CN=second"


def broken(files, what):
    """The settings with one fault."""
    faults = {
        "no certificate": lambda: files.certificate.write_text("none"),
        "no key": lambda: files.key.write_text("none"),
        "another's key": lambda: files.key.write_bytes(files.authority.issue("other")[1]),
        "expired": lambda: files.certificate.write_bytes(files.authority.issue("old", timedelta(days=-1))[0]),
        "no token": lambda: files.token.write_text(" \n"),
        "short token": lambda: files.token.write_text("secret"),
        "two lines": lambda: files.token.write_text(f"{TOKEN}\n{TOKEN}"),
    }
    faults[what]()
    return {**files.tls, "metrics_token_file": files.token}


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("no certificate", "KAPPA_METRICS_CERTIFICATE=.*tls.crt: holds no certificate in PEM form"),
        ("no key", "KAPPA_METRICS_KEY=.*tls.key: holds no key in PEM form"),
        ("another's key", "KAPPA_METRICS_KEY=.*tls.key: is not the key of the certificate"),
        ("expired", "KAPPA_METRICS_CERTIFICATE=.*tls.crt: expired at "),
        ("no token", "KAPPA_METRICS_TOKEN_FILE=.*token: .* holds no token"),
        ("short token", "KAPPA_METRICS_TOKEN_FILE=.*token: .* holds no token"),
        ("two lines", "KAPPA_METRICS_TOKEN_FILE=.*token: .* holds no token"),
    ],
)
def test_a_file_that_can_not_be_used_is_named(files, what, message):
    with pytest.raises(UserError, match=message) as refused:
        Access.of(Settings(**broken(files, what)))
    assert "secret" not in str(refused.value)


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(files):
    files.key.chmod(0)
    with pytest.raises(UserError, match=r"KAPPA_METRICS_KEY=.*: can't be read \(Permission denied\)"):
        Access.of(Settings(**files.tls))


@pytest.mark.parametrize(("given", "missing"), [("certificate", "KEY"), ("key", "CERTIFICATE")])
def test_one_of_certificate_and_key_is_not_enough(files, given, missing):
    with pytest.raises(UserError, match=f"KAPPA_METRICS_{missing}: is missing; KAPPA_METRICS_{given.upper()} needs it"):
        load_settings(**{f"metrics_{given}": getattr(files, given)})


def test_a_file_that_is_not_there_is_named(files):
    with pytest.raises(UserError, match=r"KAPPA_METRICS_TOKEN_FILE=.*gone.*: Path does not point to a file"):
        load_settings(metrics_token_file=files.token.with_name("gone"))


def test_a_run_refuses_before_it_starts_anything(files, monkeypatch):
    monkeypatch.setattr(run, "_run", lambda *_, **__: pytest.fail("it starts"))
    files.key.write_text("none")
    for name, file in (("CERTIFICATE", files.certificate), ("KEY", files.key)):
        monkeypatch.setenv(f"KAPPA_METRICS_{name}", str(file))
    done = CliRunner().invoke(run.app, ["indexer"])
    assert isinstance(done.exception, UserError) and "KAPPA_METRICS_KEY=" in str(done.exception)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl, which the image has, is not here")
@pytest.mark.parametrize("has_tls", [True, False])
@pytest.mark.parametrize(("reason", "code"), [(None, 0), ("not running", 1)])
def test_the_healthcheck_of_a_container_asks_by_tls_too(files, has_tls, reason, code):
    settings = Settings(metrics_port=0, metrics_token_file=files.token, **(files.tls if has_tls else {}))
    environment = {"KAPPA_METRICS_CERTIFICATE": str(files.certificate)} if has_tls else {}
    with MetricsServer(settings, lambda: reason) as server:
        environment["KAPPA_METRICS_PORT"] = str(port(server.url))
        checked = subprocess.run(["infra/docker/healthy"], env={**os.environ, **environment}, timeout=20, check=False)
    assert checked.returncode == code
