"""Copies of an application that begin at once, or beside one at work, on a real broker."""

import threading
import uuid
from dataclasses import replace

import pytest
from confluent_kafka.admin import NewTopic

from connectors.kafka.admin import connect
from connectors.kafka.markers import ProgressSettings
from jobs.runtime import arrival
from jobs.runtime.arrival import Arrival
from jobs.runtime.commits import BatchCommitter, TakenOverError
from tests.waiting import until


@pytest.fixture
def settings(servers) -> ProgressSettings:
    """Of a query of this test's own."""
    query = f"arrival-{uuid.uuid4().hex[:8]}"
    admin = connect(servers.bootstrap)
    for made in admin.create_topics([NewTopic(f"{query}.progress", 1, 1)]).values():
        made.result()
    return ProgressSettings(servers.bootstrap, query, "", f"{query}.progress", 60_000)


def take_over(settings):
    return BatchCommitter(replace(settings, run="run-1"), lambda: 0)


class StandingBack(threading.Thread):
    """A copy that stands back; `outcome` is what came of it."""

    def __init__(self, copy):
        super().__init__(daemon=True)
        self.copy, self.outcome = copy, "waits"
        self.start()

    def run(self):
        try:
            self.copy.stand_back(threading.Event())
            self.outcome = "goes on"
        except TakenOverError as error:
            self.outcome = str(error)


def test_the_only_copy_goes_on(settings):
    Arrival(settings)  # and was killed
    Arrival(settings).stand_back(threading.Event())


def test_the_earlier_of_two_copies_waits_for_the_later_one_and_ends(settings):
    first, second = Arrival(settings), Arrival(settings)
    earlier = StandingBack(first)
    second.stand_back(threading.Event())
    assert earlier.outcome == "waits"
    token = take_over(settings).token
    until(lambda: earlier.outcome != "waits", 30, "it still waits")
    assert f"another copy of this job runs on {token}" in earlier.outcome


def test_a_copy_goes_on_if_the_later_one_does_not_take_over(settings, monkeypatch):
    monkeypatch.setattr(arrival, "STAND_BACK_SECONDS", 2)
    earlier = StandingBack(Arrival(settings))
    Arrival(settings)
    until(lambda: earlier.outcome == "goes on", 30, earlier.outcome)


def test_a_copy_that_is_to_stop_waits_no_longer(settings):
    first = Arrival(settings)
    Arrival(settings)
    stop = threading.Event()
    stop.set()
    first.stand_back(stop)


def test_another_copy_is_at_work_if_it_commits(settings):
    at_work = take_over(settings)
    at_work.commit(0, {})
    copy = Arrival(settings)
    assert not copy.another_works()
    at_work.commit(1, {})
    assert copy.another_works()
