from dataclasses import replace

import pytest

from infra.contract.topics import load_topics
from infra.errors import UserError
from ops.capacity.costs import read_costs
from ops.capacity.plan import Load, plan

LARGE = Load(1_000_000, 320_000, 10)


def planned(load=LARGE, costs=None):
    return plan(load, costs or read_costs(), load_topics())


def of(found, job):
    return next(one for one in found.jobs if one.job == job)


def test_the_detectors_cores_and_state_follow_from_its_updates():
    found = of(planned(), "detector")
    assert found.cores == pytest.approx(1_000_000 * 10.2e-6)
    assert found.executors == 17  # 10.2 cores at 60 %
    assert found.memory_bytes == 10_000_000 * 1918


def test_fewer_points_in_a_window_make_an_event_dearer_for_statistics():
    often, seldom = (planned(Load(100_000, 1_000, scrape)) for scrape in (1, 10))
    assert of(often, "statistics").cpu_us_an_event < of(seldom, "statistics").cpu_us_an_event / 4


def test_many_scrapes_in_a_batch_make_an_event_cheaper_for_enrichment():
    often, seldom = Load(310_000, 250, 0.025), Load(310_000, 100_000, 10)
    assert (often.points_a_scrape, often.points_a_batch) == (31, 620)
    assert (seldom.points_a_scrape, seldom.points_a_batch) == (31, 31)
    one, other = (of(planned(load), "enrichment").cpu_us_an_event for load in (often, seldom))
    assert one < other / 2


def test_each_job_keeps_up_and_each_task_has_as_many_shards():
    found = planned()
    widest = max(one.executors for one in found.jobs)
    assert found.partitions >= 10_000_000 / 50_000
    assert found.partitions % widest == 0
    assert all(one.simulated.keeps_up for one in found.jobs)


def test_with_all_cores_busy_uneven_shards_fall_behind():
    found = planned(replace(LARGE, busy=1.0))
    assert not of(found, "statistics").simulated.keeps_up


def test_what_breaks_first_comes_first_and_says_what_to_do():
    limits = planned().limits
    assert [one.ratio for one in limits] == sorted((one.ratio for one in limits), reverse=True)
    assert limits[0].what.startswith("partitions of the topics")
    assert "defaults.partitions: 210" in limits[0].advice


def test_kafka_and_delta_grow_with_what_is_kept():
    one, other = planned(), planned(replace(LARGE, replication=1, retention_days=14, archive_days=180))
    assert one.kafka_bytes_per_second == 3 * other.kafka_bytes_per_second
    assert one.kafka_bytes == pytest.approx(other.kafka_bytes * 1.5)
    assert other.delta_bytes == 2 * one.delta_bytes


def test_own_costs_change_the_plan():
    costs = read_costs()
    dear = costs.model_copy(update={"detector": costs.detector.model_copy(update={"cpu_us_an_update": 102.0})})
    assert of(planned(costs=dear), "detector").cores == pytest.approx(10 * of(planned(), "detector").cores)


def test_a_load_of_more_scrapes_than_events_is_refused():
    with pytest.raises(UserError, match=r"--events-per-second 100: 10,000 machines .* 1,000 scrapes a second"):
        Load(100, 10_000, 10)
