from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from prometheus_client import REGISTRY

from jobs.detector.settings import DetectorSettings
from jobs.runtime.settings import Settings
from jobs.runtime.surroundings import expiry, observe_settings, observe_surroundings

NOW = datetime(2026, 9, 21, tzinfo=UTC)


def certificate(days: int) -> bytes:
    """A certificate in PEM that expires so many days after NOW."""
    key, name = ec.generate_private_key(ec.SECP256R1()), x509.Name([])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    valid = made.not_valid_before(NOW - timedelta(days=10_000)).not_valid_after(NOW + timedelta(days=days))
    signed = valid.serial_number(1).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def test_of_several_certificates_the_first_that_expires_counts(tmp_path):
    file = tmp_path / "ca.crt"
    file.write_bytes(certificate(90) + certificate(9) + certificate(30))
    assert expiry(file) == (NOW + timedelta(days=9)).timestamp()


@pytest.mark.parametrize("content", [b"", b"no certificate"])
def test_a_file_without_a_certificate_has_long_expired(tmp_path, content):
    file = tmp_path / "ca.crt"
    file.write_bytes(content)
    assert expiry(file) == 0
    assert expiry(tmp_path / "not there") == 0


def test_disk_and_certificates_are_looked_at_anew_by_each_scrape(tmp_path):
    file = tmp_path / "ca.crt"
    file.write_bytes(certificate(9))
    observe_surroundings(Settings(home=tmp_path, kafka_ssl_ca=file))
    labels = {"file": str(file)}
    name = "kappa_certificate_expires_timestamp_seconds"
    assert REGISTRY.get_sample_value(name, labels) == (NOW + timedelta(days=9)).timestamp()
    file.write_bytes(certificate(400))
    assert REGISTRY.get_sample_value(name, labels) == (NOW + timedelta(days=400)).timestamp()
    folder = {"folder": str(tmp_path.resolve())}
    free, size = (REGISTRY.get_sample_value(f"kappa_disk_{what}_bytes", folder) for what in ("free", "size"))
    assert 0 < free < size


def test_numbers_among_a_jobs_settings_are_shown():
    observe_settings("detector", DetectorSettings(alarms_per_day=7))
    observe_settings("archive", None)
    labels = {"job": "detector", "setting": "alarms_per_day"}
    assert REGISTRY.get_sample_value("kappa_setting", labels) == 7
