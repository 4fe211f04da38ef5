"""The declaration of the detector job."""

import threading
from functools import partial

import orjson
from pyspark.sql import DataFrame

from infra.contract.topics import TopicMap
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.incidents import job as incidents
from jobs.runtime.fold import fold_shards, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.packed_state import Parts
from jobs.runtime.runner import Gate, Queries, run_queries, start_job
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import Input, Output

SCHEMA_VERSION = b"novelties/1"


def _build(context: Context) -> DataFrame:
    statistics, novelties = context.topics["statistics"].name, context.topics["novelties"].name
    folded = fold_shards(context.stream("statistics", statistics), partial(DetectorShard, settings_for(context.topics)))
    return folded.transform(to_records, novelties, same_partition=True)


def settings_for(topics: TopicMap) -> DetectorSettings:
    """The settings of one shard: its part of the fleet's alarm budget follows from how many there are."""
    return DetectorSettings(shards=topics["statistics"].partitions)


class DetectorShard:
    """The state of one partition of `statistics`, see `jobs.runtime.shard_state`: gives the records of `novelties`."""

    def __init__(self, settings: DetectorSettings, parts: Parts | None = None) -> None:
        self.shard = Shard(settings, parts)

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `statistics`; returns those for the same partition of `novelties`."""
        before, novelties = self.shard.watermark, self.shard.feed(batch.values)
        headers = (("kappa.source", f"{batch.topic}/{batch.shard}".encode()), ("kappa.schema", SCHEMA_VERSION))
        outputs = [Output(one["machine"], orjson.dumps(one), one["time_unix_nano"], headers) for one in novelties]
        if self.shard.watermark > before:
            outputs.append(Output.of_watermark(self.shard.watermark))
        return outputs

    def dump(self) -> Parts:
        """The state as parts."""
        return self.shard.dump()


JOB = Job(
    name="detector",
    sources=lambda topics: {"statistics": (topics["statistics"].name,)},
    build=_build,
)


def start(context: Context, gate: Gate) -> Queries:
    """The detector's query, and the one that makes incidents of what it tells."""
    return {**start_job(JOB, context, gate), **start_job(incidents.JOB, context.own(), gate)}


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Run both until `stop`. Blocks; raises what one of them failed with."""
    run_queries(JOB.name, start, settings, topics, stop)
