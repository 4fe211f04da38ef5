import json
import time
from threading import Event

import pytest

from ops.simulator import feed
from ops.simulator.faults import SECOND
from ops.simulator.simulation import Settings, Simulation
from ops.simulator.truth import Truth


class Broker:
    """Takes everything at once and gives each record the time of its own clock, or the sender's."""

    def __init__(self, lag_ms=0, fail_after=10**9):
        self.log, self.flushes, self.lag_ms, self.fail_after = [], 0, lag_ms, fail_after

    def send(self, topic, key, value, timestamp_ms, delivered=None):
        if len(self.log) >= self.fail_after:
            raise ConnectionError("broker gone")
        self.log.append((topic, key, value, timestamp_ms, time.time()))
        if delivered:
            delivered(timestamp_ms + self.lag_ms)

    def poll(self, seconds=0):
        time.sleep(seconds)

    def flush(self):
        self.flushes += 1


def test_compressed_it_sends_all_records_with_their_times(simulate):
    simulation, broker = simulate(), Broker()
    progress = feed.run(simulation, broker, live=False)
    expected = [tuple(record[:4]) for record in simulation.records()]
    assert [sent[:4] for sent in broker.log] == expected
    assert (progress.records, progress.reached_ms) == (len(expected), expected[-1][3])


def test_compressed_each_simulated_second_is_delivered_before_the_next(simulate):
    simulation, broker = simulate(), Broker()
    feed.run(simulation, broker, live=False)
    seconds = {sent[3] // 1000 for sent in broker.log}
    assert broker.flushes == len(seconds) + 1


def test_live_it_sends_each_record_at_its_time():
    start = time.time_ns()
    simulation = Simulation(Settings(start, SECOND, scrape_interval=SECOND // 2, jitter=SECOND // 10))
    broker = Broker()
    feed.run(simulation, broker)
    assert broker.log
    assert all(0 <= sent_at - timestamp_ms / 1000 < 0.5 for *_, timestamp_ms, sent_at in broker.log)


def test_it_stops_when_told_and_the_truth_is_what_was_sent(tmp_path, simulate):
    simulation, broker, stop = simulate(), Broker(), Event()
    with Truth(tmp_path, simulation) as truth:
        feed.run(
            simulation,
            broker,
            truth,
            live=False,
            stop=stop,
            report=lambda progress: stop.set() if progress.records == 100 else None,
        )
    assert len(broker.log) == 100
    lines = [json.loads(line) for line in (tmp_path / "windows.jsonl").read_text().splitlines()]
    counted = sum(f["count"] for w in lines for s, f in w["series"].items() if w["kind"] == "metric" or s == "*")
    assert counted == json.loads((tmp_path / "totals.json").read_text())["accepted"] > 0


def test_the_truth_follows_the_brokers_clock(tmp_path, simulate):
    simulation = simulate(seconds=20)
    with Truth(tmp_path, simulation) as truth:
        feed.run(simulation, Broker(lag_ms=60_000), truth, live=False)
    assert truth.totals.accepted == 0 < truth.totals.late


def test_an_error_of_the_broker_is_raised(simulate):
    with pytest.raises(ConnectionError, match="broker gone"):
        feed.run(simulate(), Broker(fail_after=50), live=False)
