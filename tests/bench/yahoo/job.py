"""The Yahoo benchmark as jobs on our runtime: one counts the views in each micro-batch, the other adds them up.

Two rows of a table of jobs, in one application:

- `views`, a Transform, decodes, filters, joins and counts by built-in expressions. What it writes are a few records a
  micro-batch, and watermark records.
- `campaigns`, a Fold, adds these up and emits a window's counts once a watermark has passed its end. It can be asked
  what has come of a campaign's open windows: `GET /campaign?campaign=NAME`.

Example: KAPPA_KAFKA_BOOTSTRAP=127.0.0.1:9092 python -m tests.bench.yahoo.job
"""

import signal
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import orjson
from pydantic_settings import BaseSettings
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from connectors.kafka.reader import read_topic
from connectors.prepared import Prepared
from infra.contract.dead_letters import InvalidRecordError
from infra.contract.jobs import Job, JobTable
from infra.contract.sharding import Mine
from infra.contract.topics import Topic, TopicMap, load_topics
from jobs.runtime.intake import checked_number, checked_text, checked_time, parse, watermark_in
from jobs.runtime.job import BatchTransform, Context, Fold, Transform
from jobs.runtime.logs import configure_logs
from jobs.runtime.packed_state import Parts, pack, unpack
from jobs.runtime.queryable import Arguments, InvalidQuestionError, Question, SavedShard
from jobs.runtime.runner import PlannedJob, run_application
from jobs.runtime.settings import load_settings
from jobs.runtime.shard_state import Input, Message, Opener, Output
from tests.bench.yahoo.ads import WINDOW_MS

ADS, CAMPAIGNS, VIEWS, COUNTS = "ads", "campaigns", "views", "counts"
AD = "ad_id string, event_type string, event_time string"
NANO_A_MILLI = 1_000_000

TABLE = JobTable(
    (
        Job(
            "views",
            reads=(ADS,),
            beside=(CAMPAIGNS,),
            writes=(VIEWS,),
            watermarks=VIEWS,
            code="tests.bench.yahoo.job:TRANSFORM",
        ),
        Job(
            "campaigns",
            reads=(VIEWS,),
            writes=(COUNTS, "events.rejected"),
            code="tests.bench.yahoo.job:FOLD",
            application="views",
        ),
    )
)


def topic_map(generation: str) -> TopicMap:
    """The topics of a generation of the benchmark's jobs."""
    return TABLE.topics_in(load_topics(Path(__file__).with_name("topics.yaml")), generation)


def _streams(topics: TopicMap) -> dict[str, tuple[Topic, ...]]:
    return {ADS: (topics[ADS],)}


def _build(context: Context) -> DataFrame:
    return context.stream(ADS, _streams(context.topics)[ADS])


def _each_batch(context: Context) -> BatchTransform:
    """The transform of a micro-batch; the campaigns are those that the topic has when the job starts."""
    assert context.lateness
    topics = context.topics
    pairs = [(one.key(), one.value()) for one in read_topic(context.settings.kafka_bootstrap, topics[CAMPAIGNS].name)]
    table = context.spark.createDataFrame(pairs, "ad_id binary, campaign binary")
    campaigns = table.select(F.col("ad_id").cast("string"), F.col("campaign").cast("string")).persist()
    lateness_ms = context.lateness.allowed.by_topic[topics[ADS].name].max_ms
    return Prepared(partial(counted, campaigns=campaigns, lateness_ms=lateness_ms, topic=topics[VIEWS].name))


def counted(rows: DataFrame, campaigns: DataFrame, lateness_ms: int, topic: str) -> DataFrame:
    """The views by campaign, window and partition, as records for `topic`, from rows of Kafka.

    An event that is older than its Kafka timestamp by more than `lateness_ms` doesn't count: watermarks rely on that.
    """
    ad = F.from_json(F.col("value").cast("string"), AD).alias("ad")
    received = F.unix_millis("timestamp").alias("received")
    event_ms = F.col("ad.event_time").cast("long")
    views = (
        rows.select("topic", "partition", received, ad)
        .where((F.col("ad.event_type") == "view") & (event_ms >= F.col("received") - lateness_ms))
        .select("topic", "partition", "received", "ad.ad_id", (event_ms - event_ms % WINDOW_MS).alias("window_start"))
    )
    counts = (
        views.join(F.broadcast(campaigns), on="ad_id", how="inner")
        .groupBy("campaign", "window_start", "topic", "partition")
        .agg(F.count("*").alias("count"), F.min("received").alias("oldest"), F.max("received").alias("newest"))
    )
    return counts.select(
        F.lit(topic).alias("topic"),
        F.lit(None).cast("int").alias("partition"),
        F.col("campaign").alias("key"),
        F.to_json(F.struct("campaign", "window_start", "count")).alias("value"),
        F.col("newest").alias("timestamp_ms"),
        F.lit(None).cast("array<struct<key:string,value:binary>>").alias("headers"),
        F.col("topic").alias("source_topic"),
        F.col("partition").alias("source_partition"),
        F.col("oldest").alias("source_oldest_ms"),
        F.col("newest").alias("source_newest_ms"),
    )


class CampaignShard:
    """The state of one partition of `views`: the counts of open windows, see `jobs.runtime.shard_state`."""

    def __init__(self, parts: Parts | None = None) -> None:
        header: dict[str, Any] = unpack(parts)[0] if parts else {"watermark": 0, "windows": {}}
        self.watermark: int = header["watermark"]
        self.windows: dict[int, Counter[str]] = defaultdict(Counter)
        self.windows |= {int(start): Counter(counts) for start, counts in header["windows"].items()}

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `views`; returns the counts of the windows that watermarks close, and dead letters."""
        return [output for message in batch.messages() for output in self._take(message)]

    def _take(self, message: Message) -> Iterator[Output]:
        try:
            record = parse(message.value)
            if (watermark := watermark_in(record, message)) is not None:
                yield from self._advance(watermark)
                return
            campaign, count = checked_text(record, "campaign"), int(checked_number(record, "count", 1))
            start = checked_time("window_start", record.get("window_start"))
        except InvalidRecordError as error:
            yield Output.of_rejected("campaigns", message, error)
            return
        self.windows[start][campaign] += count

    def _advance(self, watermark: int) -> Iterator[Output]:
        if watermark <= self.watermark:
            return
        self.watermark = watermark
        for start in sorted(start for start in self.windows if _end_nano(start) <= watermark):
            for campaign, count in sorted(self.windows.pop(start).items()):
                record = {"campaign": campaign, "window_start": start, "count": count}
                yield Output(campaign, orjson.dumps(record), _end_nano(start))
        yield Output.of_watermark(watermark)

    def dump(self) -> Parts:
        """The state as parts."""
        windows = {str(start): counts for start, counts in sorted(self.windows.items())}
        return pack({"watermark": self.watermark, "windows": windows}, {})

    def retain(self, mine: Mine) -> None:
        """Forget the campaigns whose key isn't `mine`."""
        for start, counts in self.windows.items():
            self.windows[start] = Counter({campaign: count for campaign, count in counts.items() if mine(campaign)})


def _end_nano(window_start_ms: int) -> int:
    return (window_start_ms + WINDOW_MS) * NANO_A_MILLI


def _opener(_own: BaseSettings | None, _topics: TopicMap) -> Opener:
    return CampaignShard


def open_windows(shards: Sequence[SavedShard], arguments: Arguments) -> Mapping[str, Any]:
    """What has come of a campaign in the windows that are open; it is in one shard. Raises InvalidQuestionError."""
    campaign = arguments.get("campaign")
    if not campaign:
        raise InvalidQuestionError("campaign: is missing; ask /campaign?campaign=NAME")
    windows = [
        {"window_start": int(start), "count": counts[campaign]}
        for shard in shards
        for start, counts in shard.value("windows").items()
        if campaign in counts
    ]
    return {"campaign": campaign, "windows": windows}


TRANSFORM = Transform(_streams, _build, _each_batch)
FOLD = Fold(_opener, questions=lambda _: [Question("/campaign", open_windows)])


def main() -> None:
    """Run both jobs until SIGTERM."""
    settings, stop = load_settings(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    configure_logs(settings)
    planned = [PlannedJob(job, settings) for job in TABLE]
    run_application("views", planned, settings, topic_map(settings.generation), stop)


if __name__ == "__main__":
    main()
