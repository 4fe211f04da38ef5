"""Sends a simulation to Kafka, live or as fast as possible; the truth is written from Kafka's delivery reports."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import Event

from connectors.kafka.producer import Sender
from ops.simulator.simulation import Record, Simulation
from ops.simulator.truth import Truth

POLL_S = 0.1
MILLI = 1000


@dataclass(slots=True)
class Progress:
    """The progress of a feed: records sent, and the arrival time of the last one, ms."""

    records: int = 0
    reached_ms: int = 0


def run(
    simulation: Simulation,
    sender: Sender,
    truth: Truth | None = None,
    *,
    live: bool = True,
    stop: Event | None = None,
    report: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Send the simulation's records until its end or until `stop` is set, then wait for all deliveries.

    If `live`, a record is sent at its time by the wall clock. Otherwise it is sent as fast as Kafka takes it, with its
    simulated time as timestamp; each simulated second is delivered before the next, so that partitions stay in step.
    """
    progress, stop = Progress(), stop or Event()
    for record in simulation.records():
        if live:
            _wait_until(record.timestamp_ms, sender, stop)
        elif record.timestamp_ms // MILLI > progress.reached_ms // MILLI:
            sender.flush()
        if stop.is_set():
            break
        _send(record, sender, truth)
        progress.records += 1
        progress.reached_ms = record.timestamp_ms
        report(progress)
    sender.flush()
    return progress


def _send(record: Record, sender: Sender, truth: Truth | None) -> None:
    delivered = None if truth is None else partial(truth.delivered, record)
    sender.send(record.topic, record.key, record.value, record.timestamp_ms, delivered)


def _wait_until(timestamp_ms: int, sender: Sender, stop: Event) -> None:
    while not stop.is_set() and (left := timestamp_ms / MILLI - time.time()) > 0:
        sender.poll(min(left, POLL_S))
