"""Metrics of what a process stands on: its disk, its certificates, and the figures that it was set to."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from cryptography import x509
from prometheus_client import Gauge
from pydantic_settings import BaseSettings

from jobs.runtime.settings import Settings

DISK_FREE = Gauge("kappa_disk_free_bytes", "Free on the disk of a folder that the process writes", ("folder",))
DISK_SIZE = Gauge("kappa_disk_size_bytes", "Size of that disk", ("folder",))
CERTIFICATE = Gauge(
    "kappa_certificate_expires_timestamp_seconds",
    "When the first certificate of a file expires, Unix seconds",
    ("file",),
)
SETTING = Gauge("kappa_setting", "The numbers among a job's own settings", ("job", "setting"))


def observe_surroundings(settings: Settings) -> None:
    """Show free disk and the expiry of certificates; each scrape looks again, as certificates are renewed in place."""
    home = settings.home.resolve()
    DISK_FREE.labels(str(home)).set_function(lambda: shutil.disk_usage(home).free)
    DISK_SIZE.labels(str(home)).set_function(lambda: shutil.disk_usage(home).total)
    for file in _certificates(settings):
        CERTIFICATE.labels(str(file)).set_function(lambda file=file: expiry(file))  # type: ignore[misc]


def observe_settings(job: str, own: BaseSettings | None) -> None:
    """Show a job's own settings that are numbers, for alerts that compare with them."""
    for name in type(own).model_fields if own else ():
        value = getattr(own, name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            SETTING.labels(job, name).set(value)


def _certificates(settings: Settings) -> Iterable[Path]:
    of_kafka = settings.kafka_ssl_ca, settings.kafka_ssl_certificate
    return {file for file in (*of_kafka, settings.elasticsearch_ca, settings.metrics_certificate) if file}


def expiry(file: Path) -> float:
    """When the first certificate of a PEM file expires, in Unix seconds; 0 if it can't be read."""
    try:
        found = x509.load_pem_x509_certificates(file.read_bytes())
    except (OSError, ValueError):
        return 0.0
    return min(one.not_valid_after_utc.timestamp() for one in found)
