"""The detector alone over recorded statistics, with several settings at once; each partition has its own process.

What it emits depends on the records and the settings, so two runs differ by their settings and by nothing else.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from typing import NamedTuple

import orjson

from jobs.detector.novelties import Novelty
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.runtime.shard_state import Input
from ops.backtest.orders import Order, with_orders
from ops.backtest.records import Batch, Records

LOOK_SECONDS = 0.5  # between two looks at how far the processes are

_DONE: "list[Synchronized[int]]" = []  # in each process: the one number of records that all of them have read


@dataclass(frozen=True)
class Variant:
    """A way to run the detector: its settings, of one shard, and whether it obeys what operators said."""

    name: str
    settings: DetectorSettings
    obeys: bool = True


class Alert(NamedTuple):
    """A novelty, as its first record has it, with the verdict and the time of its last one."""

    id: str
    time_unix_nano: int
    machine: str
    verdict: str
    series: str | None
    score: float
    text: str
    last_verdict: str
    last_unix_nano: int

    @classmethod
    def of(cls, record: Novelty) -> "Alert":
        """Of the first record of a novelty."""
        verdict, time = record["verdict"], record["time_unix_nano"]
        about = (record["machine"], verdict, record.get("series"), record["score"], record["text"])
        return cls(record["id"], time, *about, verdict, time)


class Found(NamedTuple):
    """What a run gave: alerts by variant in the order of time, and the ends of the first and the last window."""

    alerts: dict[str, list[Alert]]
    first_unix_nano: int | None  # None without records
    last_unix_nano: int | None


class Run:
    """One partition through all variants."""

    def __init__(self, variants: Sequence[Variant]) -> None:
        self.variants = variants
        self.shards = {variant.name: Shard(variant.settings) for variant in variants}
        self._alerts: dict[str, dict[str, Alert]] = {variant.name: {} for variant in variants}
        self._first: int | None = None
        self._last: int | None = None

    def feed(self, batch: Batch) -> None:
        """Take records in the order of their log; what can't be used is left out, as the job does."""
        for variant in self.variants:
            values = batch if variant.obeys else [value for value in batch if not is_order(value)]
            shard = self.shards[variant.name]
            emitted, _ = shard.take(Input("statistics", 0, range(len(values)), values).messages())
            note(self._alerts[variant.name], emitted)
        shard = self.shards[self.variants[0].name]
        if shard.window >= 0:
            self._last = shard.settings.end_of(shard.window)
            first = shard.detector.machines.first_window
            self._first = self._first or (None if first is None else shard.settings.end_of(first))

    def found(self) -> Found:
        """What all records so far have given."""
        alerts = {name: list(by_id.values()) for name, by_id in self._alerts.items()}
        return Found(alerts, self._first, self._last)


def note(alerts: dict[str, Alert], records: Sequence[Novelty]) -> None:
    """Add records of `novelties` to the alerts by id; what began before is left out."""
    for record in records:
        known = alerts.get(record["id"])
        if known is not None:
            alerts[known.id] = known._replace(last_verdict=record["verdict"], last_unix_nano=record["time_unix_nano"])
        elif record["phase"] == "start" or record["verdict"] == "gone":
            alerts[record["id"]] = Alert.of(record)


def is_order(value: bytes) -> bool:
    """Whether a record of `statistics` is what an operator says."""
    return b'"control"' in value and "control" in orjson.loads(value)


def replay(
    records: Records,
    variants: Sequence[Variant],
    orders: Sequence[Order] = (),
    progress: Callable[[int], object] = lambda _: None,
) -> Found:
    """All partitions through all variants; `orders` is all that operators have said, in the order of time.

    `progress` is called now and then with how many records are read.
    """
    partitions = [partition for partition, size in records.sizes().items() if size]
    context = get_context("spawn")
    done = context.Value("q", 0)
    workers = max(min(len(partitions), os.cpu_count() or 1), 1)
    with ProcessPoolExecutor(workers, context, _start, (done,)) as pool:
        futures = [pool.submit(_replay, records, partition, variants, orders) for partition in partitions]
        left = set(futures)
        while left:
            _, left = wait(left, LOOK_SECONDS, FIRST_COMPLETED)
            progress(done.value)
        return together([future.result() for future in futures], variants)


def together(parts: Sequence[Found], variants: Sequence[Variant]) -> Found:
    """What all partitions gave."""
    alerts = {
        variant.name: sorted(
            (alert for part in parts for alert in part.alerts[variant.name]),
            key=lambda alert: (alert.time_unix_nano, alert.machine, alert.id),
        )
        for variant in variants
    }
    first = [part.first_unix_nano for part in parts if part.first_unix_nano is not None]
    last = [part.last_unix_nano for part in parts if part.last_unix_nano is not None]
    return Found(alerts, min(first, default=None), max(last, default=None))


def _start(done: "Synchronized[int]") -> None:
    _DONE.append(done)


def _replay(records: Records, partition: int, variants: Sequence[Variant], orders: Sequence[Order]) -> Found:
    run, (done,) = Run(variants), _DONE
    for batch in with_orders(records.read(partition), orders, variants[0].settings):
        run.feed(batch)
        with done.get_lock():
            done.value += len(batch)
    return run.found()
