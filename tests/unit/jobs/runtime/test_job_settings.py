"""A job's own settings: environment, changes of a plan, and what can't be used."""

import pytest

from infra.errors import UserError
from jobs.runtime.job_settings import load_job_settings
from jobs.table import JOBS

DETECTOR, INCIDENTS = JOBS["detector"], JOBS["incidents"]


def test_a_plan_goes_before_the_environment(monkeypatch):
    monkeypatch.setenv("KAPPA_DETECTOR_ALARMS_PER_DAY", "7")
    assert load_job_settings(DETECTOR).alarms_per_day == 7
    assert load_job_settings(DETECTOR, {"alarms_per_day": "20"}).alarms_per_day == 20


def test_a_job_without_settings_has_none():
    assert load_job_settings(INCIDENTS) is None


def test_a_wrong_variable_is_named(monkeypatch):
    monkeypatch.setenv("KAPPA_DETECTOR_WARMUP_WINDOWS", "one")
    with pytest.raises(UserError, match=r"^KAPPA_DETECTOR_WARMUP_WINDOWS='one': .*integer"):
        load_job_settings(DETECTOR)


@pytest.mark.parametrize(
    ("job", "variable", "message"),
    [
        (
            "statistics",
            "KAPPA_STATISTICS_FORGET",
            "='1h': there is no such setting; .* KAPPA_STATISTICS_WINDOWS,",
        ),
        ("detector", "KAPPA_DETECTOR_EXPIRE_WINDOWS", "='1h': .* there is .*KAPPA_DETECTOR_STATE_TTL_WINDOWS"),
    ],
)
def test_an_unknown_variable_is_named(monkeypatch, job, variable, message):
    monkeypatch.setenv(variable, "1h")
    with pytest.raises(UserError, match=f"^{variable}{message}"):
        load_job_settings(JOBS[job])


@pytest.mark.parametrize(
    ("job", "changes", "message"),
    [
        (DETECTOR, {"alarms_per_day": "-1"}, "^detector.alarms_per_day='-1': .*greater than 0"),
        (DETECTOR, {"alarms": "1"}, "^detector.alarms=1: detector has .*alarms_per_day"),
        (INCIDENTS, {"x": "1"}, "^incidents.x: incidents has no settings of its own"),
    ],
)
def test_a_wrong_change_is_named(job, changes, message):
    with pytest.raises(UserError, match=message):
        load_job_settings(job, changes)
