"""What is measured of the queries, from standings that are made up."""

from dataclasses import replace
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import REGISTRY

from connectors.kafka.standing import Standing
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime import lag
from jobs.runtime.health import Health
from jobs.runtime.lag import LagWatch, Watched
from jobs.runtime.replay import Replay

TOPICS = load_topics()
EVENTS, NOW = ("events", 0), 1_790_000_000.0


class Standings:
    """In place of a broker: `found` by topic and partition, or an exception."""

    def __init__(self, found) -> None:
        self.found = found

    def look(self, group, topics, begin):
        if isinstance(self.found, Exception):
            raise self.found
        return {place: one for place, one in self.found.items() if place[0] in topics}

    def with_times(self, group, standings, watermarked):
        self.watermarked = watermarked
        return standings


def watch(found, *watched: Watched, monkeypatch) -> tuple[LagWatch, Health, Standings]:
    standings, health = Standings(found), Health(lambda: 5.0)
    monkeypatch.setattr(lag, "Standings", lambda *_: standings)
    monkeypatch.setattr(lag, "time", SimpleNamespace(time=lambda: NOW))
    return LagWatch({}, watched, health), health, standings


def query(name="statistics", job="statistics", *topics: str, **more) -> Watched:
    return Watched(name, job, f"kappa.live.{name}", tuple(TOPICS[topic] for topic in topics or ("events",)), **more)


def sample(name: str, **labels) -> float | None:
    return REGISTRY.get_sample_value(name, labels)


def test_lag_age_headroom_and_event_time_are_shown(monkeypatch):
    behind = Standing(10, 0, 30, unread_milli=int((NOW - 3600) * 1000), watermark_milli=int((NOW - 4000) * 1000))
    even = Standing(7, 0, 7, watermark_milli=int((NOW - 30) * 1000))
    watched, health, standings = watch({EVENTS: behind, ("events", 1): even}, query(), monkeypatch=monkeypatch)
    watched.measure()
    assert standings.watermarked == {"events"}
    assert sample("kappa_lag_records", job="statistics", topic="events", partition="0") == 20
    assert sample("kappa_lag_records", job="statistics", topic="events", partition="1") == 0
    assert sample("kappa_lag_seconds", job="statistics", topic="events") == 3600
    assert sample("kappa_retention_headroom_seconds", job="statistics", topic="events") == 7 * 86_400 - 3600
    assert sample("kappa_event_time_seconds", job="statistics") == NOW - 4000, "of the slowest partition"
    assert health.unready() == "no batch committed yet: statistics"


def test_of_two_queries_of_a_job_the_one_that_is_behind_counts(monkeypatch):
    two = [query("archive.log", "archive"), query("archive.statistics", "archive")]
    watched, _, standings = watch({EVENTS: Standing(10, 0, 10)}, *two, monkeypatch=monkeypatch)
    looked = {"kappa.live.archive.log": 10, "kappa.live.archive.statistics": 4}
    standings.look = lambda group, *_: {EVENTS: Standing(looked[group], 0, 10)}
    watched.measure()
    assert sample("kappa_lag_records", job="archive", topic="events", partition="0") == 6


def test_the_event_time_of_a_partition_that_has_none_near_is_the_last_that_was_seen(monkeypatch):
    watched, _, standings = watch({EVENTS: Standing(5, 0, 5, watermark_milli=60_000)}, query(), monkeypatch=monkeypatch)
    watched.measure()
    standings.found[EVENTS] = Standing(9, 0, 9)
    watched.measure()
    assert sample("kappa_event_time_seconds", job="statistics") == 60
    standings.found["events", 1] = Standing(9, 0, 9)
    other = query("rules", "rules")
    assert other.event_time({EVENTS: Standing(5, 0, 5, watermark_milli=1), ("events", 1): Standing(9, 0, 9)}) is None


def test_a_replay_that_ends_before_the_log_has_no_lag_behind_its_end(monkeypatch):
    watched, health, _ = watch(
        {EVENTS: Standing(10, 0, 99)}, query(replay=Replay(end={EVENTS: 10})), monkeypatch=monkeypatch
    )
    watched.measure()
    assert sample("kappa_lag_records", job="statistics", topic="events", partition="0") == 0
    assert health.unready() is None


def test_where_a_job_for_people_has_committed_nothing_there_is_nothing_to_read(monkeypatch):
    never = Standing(0, 0, 99, has_committed=False)
    watched, health, _ = watch({EVENTS: never}, query("notifier", "notifier", from_end=True), monkeypatch=monkeypatch)
    watched.measure()
    assert health.unready() is None


def test_a_broker_that_does_not_answer_is_no_reason_to_end(monkeypatch):
    watched, health, standings = watch({EVENTS: Standing(1, 0, 9)}, query(), monkeypatch=monkeypatch)
    watched.measure()
    standings.found = KafkaException(KafkaError(KafkaError._TRANSPORT))
    watched.measure()
    assert health.stalled(0) is None
    watched.check_retention()


def test_a_query_is_judged_although_the_age_of_what_it_has_not_read_is_unknown(monkeypatch):
    watched, health, standings = watch({EVENTS: Standing(1, 0, 9)}, query(), monkeypatch=monkeypatch)
    failed = Mock(side_effect=KafkaException(KafkaError(KafkaError.LEADER_NOT_AVAILABLE)))
    monkeypatch.setattr(standings, "with_times", failed)
    watched.measure()
    assert failed.called
    assert health.stalled(0) == "statistics: no progress for 0 s, 8 records wait"


def test_a_query_that_retention_has_overtaken_is_refused_with_the_count(monkeypatch):
    gone = {("events", number): Standing(5, 8 + number, 99) for number in range(7)}
    watched, _, standings = watch(gone, query(), monkeypatch=monkeypatch)
    message = r"statistics: 42 records.*events-0 5 to 7, events-1 5 to 8.*and 2 partitions more.*Overtaken by retention"
    with pytest.raises(UserError, match=message):
        watched.check_retention()
    standings.found = {place: replace(one, position=one.start) for place, one in gone.items()}
    watched.check_retention()
    lenient, _, _ = watch(gone, query("indexer", "indexer", stops_at_gaps=False), monkeypatch=monkeypatch)
    lenient.check_retention()
