"""The trials of the Yahoo benchmark: an engine, alone on the machine, through a backlog and under a steady load."""

import http.client
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import cycle
from typing import Any
from urllib.parse import quote

import orjson
from confluent_kafka import OFFSET_BEGINNING, TopicPartition

from connectors.kafka.client import make_consumer
from connectors.kafka.reader import consume, object_of, read_records
from connectors.kafka.security import client_config
from tests.bench.background import Background
from tests.bench.chain.lab import Every, Usage
from tests.bench.chain.latency import quantiles
from tests.bench.chain.trial import DRAIN_SECONDS, MEASURED, USAGE_SECONDS, Look, look_at, warm_rate
from tests.bench.yahoo.ads import WINDOW_MS, Ads, Counts, Window
from tests.bench.yahoo.compare import Comparison, Record, compare, window_of
from tests.bench.yahoo.engines import QUESTIONS, AdsLab, sent
from tests.waiting import until

COMPLETE_SECONDS = 300.0  # from the last event on; by then each window must have its count
ASK_SECONDS = 0.05
PATIENCE_SECONDS = 5.0  # for an answer


class Arrivals(Background):
    """Reads an engine's output, committed records only, and notes when each window's true count came."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, truth: Counts) -> None:
        super().__init__()
        self.truth, self.seconds = truth, dict[Window, float]()  # by the clock
        self._consumer = make_consumer(client_config(bootstrap), "bench.arrivals", {"fetch.wait.max.ms": 10})
        self._consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(partitions)])

    def run(self) -> None:
        """Until the block ends."""
        while not self.over.is_set():
            messages = consume(self._consumer, 10_000, 0.1)
            now = time.time()
            for record in _counts(object_of(message.value()) for message in messages if not message.error()):
                if self.truth.get(window_of(record)) == record["count"]:
                    self.seconds.setdefault(window_of(record), now)

    def is_complete(self) -> bool:
        """Whether each window has had its count."""
        return len(self.seconds) == len(self.truth)

    def latencies(self, from_ms: int) -> list[float]:
        """From the end of each window that begins at that time or later until its count was there, s."""
        return [now - (start + WINDOW_MS) / 1000 for (_, start), now in self.seconds.items() if start >= from_ms]

    def close(self) -> None:
        """Close its consumer."""
        self._consumer.close()


class Asking(Background):
    """Asks a running engine for one campaign after the other, over HTTP."""

    def __init__(self, port: int, ads: Ads) -> None:
        super().__init__()
        self.milliseconds: list[float] = []
        self.failed, self.answers = Counter[str](), list[Record]()
        self._port, self._campaigns = port, cycle(ads.campaigns)

    def run(self) -> None:
        """Until the block ends."""
        while not self.over.wait(ASK_SECONDS):
            began = time.perf_counter()
            try:
                answer = _ask(self._port, f"/campaign?campaign={quote(next(self._campaigns))}")
            except (OSError, http.client.HTTPException) as error:
                self.failed[str(error)] += 1
                continue
            self.milliseconds.append((time.perf_counter() - began) * 1000)
            self.answers += [{"campaign": answer["campaign"], **window} for window in answer["windows"]]

    def exceeding(self, truth: Counts) -> int:
        """How many answers say more than the truth: a window that is open has at most its events."""
        return sum(one["count"] > truth.get(window_of(one), one["count"]) for one in self.answers)

    def facts(self) -> dict[str, Any]:
        """As the report has it, in ms."""
        return quantiles(self.milliseconds, "ms") | {"failed": dict(self.failed), "counts": len(self.answers)}


def backlog(lab: AdsLab, engine: str, ads: Ads, truth: Counts) -> dict[str, Any]:
    """An engine through the events that wait for it: its rate while it is warm, what it uses, and what it counted."""
    lab.create_topics()
    began, looks = time.monotonic(), list[Look]()
    lab.start(engine)
    usage = Usage(lab.leaders(engine))
    before = usage.look()
    with arrivals(lab, engine, truth) as arrived, Every(USAGE_SECONDS, usage.look):

        def is_read() -> bool:
            looks.append(look_at(lab, engine, usage))
            return looks[-1].share >= MEASURED[1]

        until(is_read, DRAIN_SECONDS, f"{engine} is slow")
        _wait(arrived.is_complete)
    million, after = ads.events / 1e6, usage.look()
    facts = {
        **warm_rate(looks, ads.events),
        "broker_cpu_seconds_per_million": round((after["broker"] - before["broker"]) / million, 2),
        "seconds_with_start": round(time.monotonic() - began, 1),
        "peak_megabytes": round(usage.peak_megabytes[engine]),
        "compared": compared(lab, engine, ads, truth).facts(),
    }
    lab.stop(engine)
    return facts


def steady(lab: AdsLab, engine: str, ads: Ads, warm_seconds: int) -> dict[str, Any]:
    """An engine under a load that leaves it time: how late counts are, and how long an answer takes meanwhile.

    The load must begin soon; what is measured begins `warm_seconds` later.
    """
    truth, from_ms, asking = ads.truth(), ads.start_ms + warm_seconds * 1000, None
    load = lab.send(ads, paced=True)
    with arrivals(lab, engine, truth) as arrived:
        time.sleep(max(0.0, from_ms / 1000 - time.time()))
        if engine in QUESTIONS:
            with Asking(QUESTIONS[engine], ads) as asking:
                facts = sent(load, ads.seconds + COMPLETE_SECONDS)
        else:
            facts = sent(load, ads.seconds + COMPLETE_SECONDS)
        lab.check(engine)
        _wait(arrived.is_complete)
    comparison = compared(lab, engine, ads, truth)
    lab.stop(engine)
    return {
        "latency": quantiles(arrived.latencies(from_ms)),
        "query": asking and asking.facts() | {"more_than_the_truth": asking.exceeding(truth)},
        "compared": comparison.facts(),
        "load": facts,
    }


def arrivals(lab: AdsLab, engine: str, truth: Counts) -> Arrivals:
    """What comes of an engine."""
    topic = lab.out(engine)
    return Arrivals(lab.broker.address, topic, len(lab.log.partitions([topic])), truth)


def compared(lab: AdsLab, engine: str, ads: Ads, truth: Counts) -> Comparison:
    """What an engine has written until now, compared with the truth."""
    records = _counts(record for _, record in read_records(lab.broker.address, lab.out(engine)))
    return compare(truth, records, ads.is_compared, updates=lab.updates(engine))


def _wait(is_complete: Callable[[], bool]) -> None:
    """Until each window has its count, or for so long that the comparison may say what is missing."""
    with suppress(TimeoutError):
        until(is_complete, COMPLETE_SECONDS, "not complete")


def _counts(records: Iterable[Record | None]) -> Iterator[Record]:
    """The records that are counts: our runtime writes watermarks among them."""
    return (record for record in records if record and "campaign" in record)


def _ask(port: int, path: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        if answer.status != 200:
            raise http.client.HTTPException(f"{answer.status} {answer.read().decode()}")
        return orjson.loads(answer.read())
    finally:
        connection.close()
