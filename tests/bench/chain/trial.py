"""The chain under a steady load, and each of its stages alone."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median_low
from typing import Any, NamedTuple

import numpy as np
import orjson

from infra.errors import UserError
from ops.simulator.encode import LINES_TOPIC, METRICS_TOPIC
from tests.bench.chain import limit
from tests.bench.chain.indexed import Indexed
from tests.bench.chain.lab import STAGES, Every, Lab, Usage
from tests.bench.chain.latency import Latencies
from tests.waiting import until

ARCHIVE = "archive"
LOOK_SECONDS = 2.0  # at lags
USAGE_SECONDS = 5.0
POINTS = 31  # of a scrape, and so many series has a machine, about
# A lag that grows by no more than this share of what comes in is flat. The archive works each minute or, if that is not
# enough, in batches that take longer: a measurement must last for several of them.
FLAT = 0.05
DRAIN_SECONDS = 900.0
LEAD_SECONDS = 60  # at a rate before it is measured
BACKLOG_SECONDS = 400  # of load, for what is measured alone
# A backlog is read in at least so many batches, and none has many more events than that. What waits for one stage are
# scrapes, for another what a thousand of them were gathered to: a number of records says little. The archive's trigger
# is the longest: a minute brings it that many at 115,000/s.
BATCHES, BATCH_EVENTS, ARCHIVE_BATCH_EVENTS = 6, 3_500_000, 7_000_000
MEASURED = (0.5, 0.9)  # of a backlog: a JVM compiles in the beginning, and in the end Flink waits for its checkpoint
DRAINED = 0.99  # of the offsets: Flink doesn't commit those of transactions' markers, of which gathering has more
FORMATS = {METRICS_TOPIC: "otlp_metrics_json", LINES_TOPIC: "lines_json"}
TOLD = ("events", "statistics", "novelties", "incidents")


@dataclass(frozen=True)
class Shape:
    """What all trials of a run have in common."""

    machines: int
    warm: int
    seconds: int
    settings: dict[str, str]

    def of_backlog(self) -> "Shape":
        """The same, but with one batch right after the other: else a trigger's largest batch would be the limit."""
        triggers = {"KAPPA_TRIGGER_SECONDS": "1", "KAPPA_ARCHIVE_TRIGGER_SECONDS": "1"}
        return replace(self, settings=self.settings | triggers)

    @contextmanager
    def lab(self) -> Iterator[Lab]:
        """A broker of its own, in a folder that is deleted."""
        with tempfile.TemporaryDirectory() as folder, Lab(Path(folder), self.settings).up() as lab:
            yield lab


class Flow(NamedTuple):
    """Records a second: what a stage reads, by how much its lag grows, and what of that can't be told.

    `events` come in transactions of a thousand records each ten seconds: such a one is no growth.
    """

    read: float
    growth: float
    grain: float

    def is_flat(self) -> bool:
        """Whether the stage keeps up."""
        return self.read > 0 and self.growth <= max(FLAT * self.read, self.grain)


def climb(shape: Shape, rates: Sequence[int], topic: str) -> Iterator[dict[str, Any]]:
    """The whole chain under one load after the other, up to the first that it doesn't keep up with.

    One start for all, and a warm-up at their median: until the JVMs have compiled what they run, they take more CPU
    time than the events do, and at a low rate that lasts long.
    """
    with shape.lab() as lab:
        for name in STAGES:
            lab.start(name)  # one by one: all four at once take so long that Spark gives up waiting for its workers
        warm_up = lab.load(median_low(rates), shape.warm, shape.machines, singles=topic == LINES_TOPIC)
        warm_up.communicate(timeout=shape.warm + 120)
        for rate in rates:
            found = trial(lab, shape, rate, topic)
            yield found
            if not found["sustained"]:
                return


def trial(
    lab: Lab, shape: Shape, rate: int, topic: str, beside: Mapping[str, Callable[[], Indexed]] = {}
) -> dict[str, Any]:
    """`rate` events a second, measured from the second minute on: who keeps up, what it uses, how late results are.

    `beside` measures further latencies in the same time.
    """
    load = lab.load(rate, LEAD_SECONDS + shape.seconds, shape.machines, singles=topic == LINES_TOPIC)
    usage = Usage(lab.leaders(*STAGES))
    time.sleep(LEAD_SECONDS)
    with (
        Every(USAGE_SECONDS, usage.look),
        Latencies(lab.broker.address, TOLD) as latencies,
        ExitStack() as stack,
    ):
        further = {name: stack.enter_context(begin()) for name, begin in beside.items()}
        before = usage.look()
        flows = watch(lab, shape.seconds)
        after = usage.look()
    lab.check()
    sent = orjson.loads(load.communicate(timeout=120)[0])
    events_per_s = sent["events"] / sent["seconds"]
    million = events_per_s * shape.seconds / 1e6
    return {
        "rate": rate,
        "events_per_s": round(events_per_s),
        "sustained": all(flow.is_flat() for flow in flows.values()),
        "records_per_s": {stage: round(flow.read, 1) for stage, flow in flows.items()},
        "lag_growth_per_s": {stage: round(flow.growth, 2) for stage, flow in flows.items()},
        "growth_not_told_per_s": {stage: round(flow.grain, 2) for stage, flow in flows.items()},
        "cpu_seconds_per_million": {name: round((after[name] - before[name]) / million, 2) for name in after},
        "peak_megabytes": {name: round(peak) for name, peak in usage.peak_megabytes.items()},
        "latency": latencies.quantiles() | {name: one.quantiles() for name, one in further.items()},
        "load": sent,
    }


def watch(lab: Lab, seconds: int) -> dict[str, Flow]:
    """How each stage keeps up over that time."""
    looks: dict[str, list[tuple[float, int, int]]] = {stage: [] for stage in STAGES}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for stage, seen in looks.items():
            seen.append((time.monotonic(), *lab.position(stage)))
        time.sleep(LOOK_SECONDS)
    return {stage: _flow(seen) for stage, seen in looks.items()}


def _flow(seen: list[tuple[float, int, int]]) -> Flow:
    """Lag is a sawtooth, as jobs work by batches: what it falls to is compared, in the last half with the first."""
    time, done, lag = np.array(seen).T
    half = (time[-1] - time[0]) / 2
    is_first = time <= time[0] + half
    growth = lag[~is_first].min() - lag[is_first].min()
    at_once = np.diff(done + lag).max()
    return Flow(float(np.polyfit(time, done, 1)[0]), float(growth / half), float(at_once / half))


def apart(shape: Shape, rate: int, topic: str) -> dict[str, dict[str, Any]]:
    """The same load as a backlog: the limit, and each stage's way through it, alone on the machine.

    Returns `limit` and `stages`; rates in events a second.
    """
    with shape.of_backlog().lab() as lab:
        events = fill(lab, replace(shape, seconds=BACKLOG_SECONDS), rate, topic)
        ways = limit.measure(lab.settings, topic, FORMATS[topic])
        limits = {way: round(events / seconds) for way, seconds in ways.items()}
        return {"limit": limits, "stages": {stage: alone(lab, stage, events) for stage in STAGES}}


def fill(lab: Lab, shape: Shape, rate: int, topic: str) -> int:
    """Let the load run while nobody reads; gives the number of events that wait then."""
    lab.start()
    load = lab.load(rate, shape.seconds, shape.machines, singles=topic == LINES_TOPIC)
    events: int = orjson.loads(load.communicate(timeout=shape.seconds + 600)[0])["events"]
    return events


def alone(lab: Lab, stage: str, events: int, helpers: Sequence[int] = ()) -> dict[str, float]:
    """One stage through all records that wait for it: its rate while it is warm, and what it uses.

    With it works what runs in the sessions of the processes `helpers`.
    """
    _, waiting = lab.position(stage)
    batches = max(BATCHES, events // (ARCHIVE_BATCH_EVENTS if stage == ARCHIVE else BATCH_EVENTS))
    lab.jobs[stage].extra["KAPPA_MAX_OFFSETS_PER_TRIGGER"] = str(-(-waiting // batches))
    lab.start(stage)
    usage = Usage(lab.leaders(stage), {stage: helpers})
    looks: list[Look] = []

    def is_drained() -> bool:
        looks.append(look_at(lab, stage, usage))
        return looks[-1].share > DRAINED

    with Every(USAGE_SECONDS, usage.look):
        until(is_drained, DRAIN_SECONDS, f"{stage} is slow")
    lab.stop(stage)
    return warm_rate(looks, events) | {"peak_megabytes": round(usage.peak_megabytes[stage])}


class Look(NamedTuple):
    """When, which share of the records was read, CPU seconds of stage and broker until then."""

    time: float
    share: float
    cpu: float


def look_at(lab: Lab, stage: str, usage: Usage) -> Look:
    """How far a stage is; fails if it has ended."""
    lab.check(stage)
    done, lag = lab.position(stage)
    return Look(time.monotonic(), done / (done + lag), usage.look()[stage])


def warm_rate(looks: Sequence[Look], events: int) -> dict[str, float]:
    """The rate of a stage that went through so many events, and its CPU time, in the part that is measured.

    Raises:
        UserError: it was so quick that no part of its way was seen.
    """
    first, last = (next(look for look in looks if look.share >= share) for share in MEASURED)
    read = events * (last.share - first.share)
    if not read:
        raise UserError(f"a backlog of {events:,} events was read between two looks: wait with more, by --seconds")
    return {
        "events_per_s": round(read / (last.time - first.time)),
        "cpu_seconds_per_million": round(1e6 * (last.cpu - first.cpu) / read, 2),
    }
