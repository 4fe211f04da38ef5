import pytest

from infra.errors import UserError
from jobs.runtime.settings import Settings
from ops.replay.plan import Request, parse_time, plan
from ops.replay.registry import CHAIN, Generation, Promotion, Registry

FOLLOWERS = ("detector", "incidents", "archive", "indexer")


class OneRecordASecond:
    """A log of two partitions that begin at offset 10, where second n of the epoch is offset n; they end at 100, 90."""

    def starts(self, topics):
        return {(topic, number): 10 for topic in topics for number in (0, 1)}

    def ends(self, topics):
        return {(topic, number): end for topic in topics for number, end in ((0, 100), (1, 90))}

    def at(self, topics, time_ms):
        return {place: min(time_ms // 1000, end) for place, end in self.ends(topics).items()}


@pytest.fixture
def planned():
    registry = Registry({"v2": Generation(name="v2", base="live", jobs=FOLLOWERS)})

    def planned(name="v3", job="detector", **options):
        return plan(Request(name, job, **options), Settings(), registry, OneRecordASecond())

    return planned


def test_a_generation_runs_the_job_and_all_that_follow_it(planned):
    assert planned(job="statistics").jobs == ("statistics", *FOLLOWERS)


def test_jobs_that_only_readers_need_can_be_left_out(planned):
    assert planned(without=["archive", "indexer"]).jobs == ("detector", "incidents")


@pytest.mark.parametrize("unwanted", ["detector", "incidents", "enrichment", "notifier"])
def test_jobs_that_others_need_or_that_do_not_run_cannot_be_left_out(planned, unwanted):
    with pytest.raises(UserError, match=f"--without {unwanted}: leave out archive or indexer"):
        planned(without=["archive", unwanted])


def test_a_replay_tells_nobody_again_what_has_long_happened():
    settings = Settings(optional_jobs="notifier,rules")
    found = plan(Request("v3", "enrichment"), settings, Registry(), OneRecordASecond())
    assert "rules" in found.jobs and "notifier" not in found.jobs
    found.check_runs("notifier")  # but once it is promoted, people may hear of it


def test_earliest_to_follow_reads_all_and_never_ends(planned):
    found = planned()
    assert found.replay.start == {("statistics", 0): 10, ("statistics", 1): 10}
    assert found.replay.backlog == {"statistics": 170}
    assert found.follows


def test_a_stretch_of_time_is_a_stretch_of_each_partition(planned):
    found = planned(begin="1970-01-01T00:00:20Z", until="1970-01-01T00:01:35")
    assert found.replay.start == {("statistics", 0): 20, ("statistics", 1): 20}
    assert found.replay.end == {("statistics", 0): 95, ("statistics", 1): 90}
    assert found.replay.backlog == {"statistics": 145}
    assert found.begin_ms == 20_000


def test_settings_are_kept_by_job_and_name(planned):
    found = planned(changes=["detector.alarms_per_day=20"])
    assert found.settings == {"detector.alarms_per_day": "20"}
    assert found.changes("detector") == {"alarms_per_day": "20"} and found.changes("statistics") == {}


def test_a_plan_of_an_older_version_is_refused_with_what_to_do():
    older = Generation(name="v2", base="live", jobs=FOLLOWERS, settings={"KAPPA_DETECTOR_ALARMS_PER_DAY": "20"})
    with pytest.raises(UserError, match=r"planned by version 0\.1\.0 .*start it again by `kappa replay start`"):
        older.changes("detector")


def test_the_promoted_generation_is_the_base():
    registry = Registry({"v2": Generation(name="v2", base="live", jobs=CHAIN)}, Promotion(generation="v2"))
    found = plan(Request("v3", "detector"), Settings(), registry, OneRecordASecond())
    assert found.base == "v2"
    assert found.replay.start == {("statistics.v2", 0): 10, ("statistics.v2", 1): 10}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "v2"}, "--as v2: there is one already"),
        ({"name": "live"}, "--as 'live'"),
        ({"job": "archive"}, "--job archive: replay from one of"),
        ({"begin": "yesterday"}, "'yesterday' is no time"),
        ({"base": "v9"}, "generation='v9': there is none"),
        ({"changes": ["detector.alarms=1"]}, "detector has .*alarms_per_day"),
        ({"changes": ["detector.alarms_per_day=-1"]}, "alarms_per_day.*greater than 0"),
        ({"changes": ["alarms_per_day=1"]}, "write job.setting=value"),
        ({"job": "enrichment", "where": "true"}, "--where: .* --job statistics"),
        ({"source": "delta"}, "--source delta: .* --to latest"),
    ],
)
def test_what_can_not_be_planned_is_named(planned, options, message):
    with pytest.raises(UserError, match=message):
        planned(**options)


def test_a_time_without_a_zone_is_utc():
    assert parse_time("2026-03-01T06:00:00") == parse_time("2026-03-01T07:00:00+01:00") == 1772344800000
