"""A job's own settings: environment, changes of a plan, and what can't be used."""

import pytest

from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.table import JOBS

DETECTOR, ENRICHMENT = JOBS["detector"], JOBS["enrichment"]


def test_a_plan_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("KAPPA_DETECTOR_ALARMS_PER_DAY", "7")
    assert load_job_settings(DETECTOR).alarms_per_day == 7
    assert load_job_settings(DETECTOR, {"alarms_per_day": "20"}).alarms_per_day == 20


def test_a_job_without_settings_has_none():
    assert load_job_settings(ENRICHMENT) is None


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("KAPPA_DETECTOR_WARMUP_WINDOWS", "one")
    with pytest.raises(UserError, match=r"^KAPPA_DETECTOR_WARMUP_WINDOWS='one': .*integer"):
        load_job_settings(DETECTOR)


@pytest.mark.parametrize(
    ("job", "changes", "message"),
    [
        (DETECTOR, {"alarms_per_day": "-1"}, "^detector.alarms_per_day='-1': .*greater than 0"),
        (DETECTOR, {"alarms": "1"}, "^detector.alarms=1: detector has .*alarms_per_day"),
        (ENRICHMENT, {"x": "1"}, "^enrichment.x: enrichment has no settings of its own"),
    ],
)
def test_a_wrong_change_is_named(job, changes, message):
    with pytest.raises(UserError, match=message):
        load_job_settings(job, changes)
