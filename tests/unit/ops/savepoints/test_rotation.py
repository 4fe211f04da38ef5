from datetime import UTC, datetime, timedelta

import pytest

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.savepoints import rotation, savepoints
from ops.savepoints.archive import MANIFEST
from ops.savepoints.rotation import rotate

NOW = datetime(2026, 9, 21, 12, tzinfo=UTC)


@pytest.fixture
def settings(tmp_path):
    return Settings(home=tmp_path)


@pytest.fixture
def taken(monkeypatch, settings):
    """What is written in place of a copy of a checkpoint; a job of the list `idle` can't be saved."""
    idle = []

    def create(name, job, of, spark):
        if job in idle:
            raise UserError(f"job {job}: has done no batch yet")
        savepoints.store_of(name, of).write(MANIFEST, b"{}")
        return name

    monkeypatch.setattr(rotation.savepoints, "create", create)
    return idle


def names(settings):
    return sorted(path.parent.name for path in settings.home.resolve().rglob(MANIFEST))


def test_the_newest_of_each_job_are_kept_and_those_that_people_have_named(settings, taken):
    savepoints.store_of("before-upgrade", settings).write(MANIFEST, b"{}")
    savepoints.store_of("auto.v2.detector.20260901T000000Z", settings).write(MANIFEST, b"{}")
    savepoints.store_of("auto.live.detector.20260919T000000Z", settings).write("checkpoint/metadata", b"cut")
    for day in range(4):
        rotate(["detector", "statistics"], 2, settings, None, NOW + timedelta(days=day))
    assert names(settings) == [
        "auto.live.detector.20260923T120000Z",
        "auto.live.detector.20260924T120000Z",
        "auto.live.statistics.20260923T120000Z",
        "auto.live.statistics.20260924T120000Z",
        "auto.v2.detector.20260901T000000Z",
        "before-upgrade",
    ]
    assert not list(settings.home.rglob("auto.live.detector.20260919*/metadata"))


def test_one_that_was_cut_off_is_not_one_of_those_that_are_kept(settings, taken):
    rotate(["detector"], 2, settings, None, NOW)
    cut = savepoints.store_of("auto.live.detector.20260922T000000Z", settings)
    cut.write("checkpoint/metadata", b"cut")
    rotate(["detector"], 2, settings, None, NOW + timedelta(days=1))
    assert names(settings) == ["auto.live.detector.20260921T120000Z", "auto.live.detector.20260922T120000Z"]
    assert not cut.names()


def test_a_job_that_can_not_be_saved_keeps_what_it_has(settings, taken):
    for day in range(2):
        rotate(["detector"], 2, settings, None, NOW + timedelta(days=day))
    taken.append("detector")
    assert rotate(["detector", "statistics"], 1, settings, None, NOW + timedelta(days=3)) == [
        "auto.live.statistics.20260924T120000Z"
    ]
    assert len([name for name in names(settings) if "detector" in name]) == 2


def test_a_deleted_savepoint_is_gone_and_one_that_is_not_there_is_named(settings):
    savepoints.store_of("monday", settings).write(MANIFEST, b"{}")
    savepoints.delete("monday", settings)
    assert names(settings) == []
    with pytest.raises(UserError, match="'monday': there is none; there are none"):
        savepoints.delete("monday", settings)
