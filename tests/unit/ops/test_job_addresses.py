import pytest

from infra.errors import UserError
from jobs.runtime.metrics import MetricsServer
from jobs.runtime.settings import Settings
from ops.job_addresses import JobAddresses
from tests.unit.jobs.runtime.served import Files

IN_CONTAINERS = "http://kappa-{application}-1:9400/metrics"


@pytest.mark.parametrize(
    ("settings", "template", "application", "url"),
    [
        (Settings(), None, "detector", "http://127.0.0.1:9402/metrics"),
        (Settings(metrics_port=9500, profile="small"), None, "all", "http://127.0.0.1:9500/metrics"),
        (Settings(optional_jobs=("rules",)), IN_CONTAINERS, "rules", "http://kappa-rules-1:9400/metrics"),
    ],
)
def test_metrics_are_where_run_all_or_the_template_has_them(settings, template, application, url):
    assert JobAddresses(settings, template).metrics(application) == url


@pytest.mark.parametrize(
    ("settings", "job", "url"),
    [
        (Settings(), "incidents", "http://127.0.0.1:9402/state?machine=vm-1&series=cpu%7Ba%3D1%7D"),
        (Settings(profile="small"), "detector", "http://127.0.0.1:9400/state?machine=vm-1&series=cpu%7Ba%3D1%7D"),
    ],
)
def test_a_question_goes_to_the_application_of_the_job(settings, job, url):
    assert JobAddresses(settings).question(job, "/state", machine="vm-1", series="cpu{a=1}") == url


@pytest.fixture
def files(tmp_path):
    return Files(tmp_path)


@pytest.fixture
def served(files):
    """The address of a job with a certificate and a token."""
    settings = Settings(metrics_port=0, metrics_token_file=files.token, **files.tls)
    with MetricsServer(settings, lambda: None) as server:
        yield server.url


def test_who_has_the_certificate_asks_by_https(files):
    jobs = JobAddresses(Settings(**files.tls))
    assert jobs.metrics("detector") == "https://127.0.0.1:9402/metrics"
    assert jobs.health("detector") == "https://127.0.0.1:9402/healthz"


def test_a_job_is_asked_with_ca_and_token(files, served):
    jobs = JobAddresses(Settings(metrics_ca=files.ca, metrics_token_file=files.token), served)
    with jobs.open(jobs.metrics("detector"), 10) as answer:
        assert b"kappa_build_info" in answer.read()


def test_a_renewed_token_is_sent_without_a_restart(files, served):
    jobs = JobAddresses(Settings(metrics_ca=files.ca, metrics_token_file=files.token), served)
    files.token.write_text("another-token-of-this-test")
    assert jobs.open(served, 10).status == 200


def test_another_token_is_said(files, served, tmp_path):
    other = tmp_path / "other"
    other.write_text("another-token-of-this-test")
    for token in (None, other):
        with pytest.raises(UserError, match=f"KAPPA_METRICS_TOKEN_FILE={token}: {served} asks for another token"):
            JobAddresses(Settings(metrics_ca=files.ca, metrics_token_file=token)).open(served, 10)


def test_another_authority_and_another_name_are_said(files, served, tmp_path):
    (tmp_path / "other").mkdir()
    other = Files(tmp_path / "other")
    with pytest.raises(UserError, match=f"KAPPA_METRICS_CA={other.ca}: {served} isn't trusted .*; give the CA"):
        JobAddresses(Settings(metrics_ca=other.ca)).open(served, 10)
    elsewhere = Settings(metrics_port=0, metrics_host="127.0.0.2", **files.tls)
    with (
        MetricsServer(elsewhere, lambda: None) as server,
        pytest.raises(UserError, match="an address that the certificate names"),
    ):
        JobAddresses(Settings(metrics_ca=files.ca)).open(server.url, 10)


def test_a_file_of_no_authority_is_refused_before_anything_is_asked(files):
    files.ca.write_text("none")
    with pytest.raises(UserError, match=r"KAPPA_METRICS_CA=.*ca\.crt: holds no certificate in PEM form"):
        JobAddresses(Settings(metrics_ca=files.ca))
