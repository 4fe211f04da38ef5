"""The declaration of the detector job."""

from functools import partial

import orjson
from pyspark.sql import DataFrame

from infra.topics import TopicMap
from jobs.detector import shard
from jobs.detector.settings import DetectorSettings
from jobs.runtime.fold import Input, Output, fold_shards, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.runner import run_job, start_job

SCHEMA_VERSION = b"novelties/1"


def _build(context: Context) -> DataFrame:
    statistics, novelties = context.topics["statistics"].name, context.topics["novelties"].name
    folded = fold_shards(context.stream("statistics", statistics), partial(_fold, settings_for(context.topics)))
    return folded.transform(to_records, novelties, same_partition=False)


def settings_for(topics: TopicMap) -> DetectorSettings:
    """The settings of one shard: its part of the fleet's alarm budget follows from how many there are."""
    return DetectorSettings(shards=topics["statistics"].partitions)


def _fold(settings: DetectorSettings, state: bytes | None, batch: Input) -> tuple[bytes, list[Output]]:
    after, novelties = shard.fold(state, batch.values, settings)
    headers = (("kappa.source", f"{batch.topic}/{batch.shard}".encode()), ("kappa.schema", SCHEMA_VERSION))
    return after, [
        Output(novelty["machine"], orjson.dumps(novelty), novelty["time_unix_nano"], headers) for novelty in novelties
    ]


JOB = Job(
    name="detector",
    sources=lambda topics: {"statistics": (topics["statistics"].name,)},
    build=_build,
)

start = partial(start_job, JOB)
run = partial(run_job, JOB)
