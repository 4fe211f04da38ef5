import pytest

from infra.errors import UserError
from jobs.enrichment.settings import EnrichmentSettings
from jobs.runtime.job_settings import load_job_settings
from jobs.table import JOBS


def test_limits_come_from_the_environment_and_a_plan_overrides_them(monkeypatch):
    monkeypatch.setenv("KAPPA_ENRICHMENT_MACHINE_BYTES", "100")
    monkeypatch.setenv("KAPPA_ENRICHMENT_UNIT_BYTES", "")
    found = load_job_settings(JOBS["enrichment"], {"series_bytes": "500"})
    assert isinstance(found, EnrichmentSettings)
    assert (found.machine_bytes, found.unit_bytes, found.series_bytes) == (100, 63, 500)


@pytest.mark.parametrize(("name", "value"), [("MACHINE_BYTES", "0"), ("SERIES_BYTES", "8001"), ("ATTRIBUTES", "many")])
def test_a_limit_that_makes_no_sense_is_named(monkeypatch, name, value):
    monkeypatch.setenv(f"KAPPA_ENRICHMENT_{name}", value)
    with pytest.raises(UserError, match=f"KAPPA_ENRICHMENT_{name}='{value}'"):
        load_job_settings(JOBS["enrichment"])
