"""Which jobs are started, with what, and what ends before anything starts."""

import threading

import pytest

from infra.errors import UserError
from jobs.runtime.replay import Replay
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops import launcher
from ops.replay.registry import Generation, Registry

FOLLOWERS = ("detector", "incidents", "archive", "indexer")
PLANNED = Generation(
    name="v2",
    base="live",
    jobs=FOLLOWERS,
    settings={"detector.alarms_per_day": "20"},
    replay=Replay(start={"statistics": {0: 7}}),
)
REGISTRY = Registry({"v2": PLANNED})


@pytest.fixture
def started(monkeypatch):
    """What is run: (application, names of jobs, settings by job)."""
    runs = []
    monkeypatch.setattr(launcher, "check_surroundings", lambda *_: None)
    monkeypatch.setattr(launcher, "check_limits", lambda *_: None)
    monkeypatch.setattr(launcher, "check_rights", lambda *_: None)
    monkeypatch.setattr(launcher, "registry_for", lambda settings, _: REGISTRY)
    monkeypatch.setattr(
        launcher, "run_application", lambda name, jobs, *_: runs.append((name, {one.job.name: one for one in jobs}))
    )
    monkeypatch.setattr(launcher, "give_way", lambda: runs.append("gives way"))
    return runs


@pytest.mark.parametrize("application", ["archive", "enrichment", "all"])
def test_only_what_nobody_waits_for_gives_way(started, application):
    run(application)
    assert ("gives way" in started) == (application == "archive")


def run(application, **settings):
    launcher.run(application, Settings(**settings), threading.Event())


def test_an_application_runs_all_its_jobs(started):
    run("detector")
    ((name, jobs),) = started
    assert name == "detector" and list(jobs) == ["detector", "incidents"]


def test_all_is_one_application_with_every_job_that_is_not_optional(started):
    run("all")
    assert list(started[0][1]) == list(JOBS.enabled())


def test_a_plan_changes_the_settings_of_its_jobs_and_what_the_first_one_reads(started):
    run("detector", generation="v2")
    jobs = started[0][1]
    assert jobs["detector"].own.alarms_per_day == 20
    assert jobs["detector"].settings.replay == PLANNED.replay
    assert jobs["incidents"].settings.replay == Replay()


def test_a_job_that_the_generation_does_not_run_is_refused(started):
    with pytest.raises(UserError, match=r"generation=v2: runs detector, incidents, .*statistics is live"):
        run("statistics", generation="v2")
    assert not started


def test_wrong_settings_of_a_job_end_before_anything_starts(started, monkeypatch):
    monkeypatch.setenv("KAPPA_DETECTOR_ALARMS_PER_DAY", "-3")
    with pytest.raises(UserError, match="KAPPA_DETECTOR_ALARMS_PER_DAY='-3'"):
        run("detector")
    assert not started
