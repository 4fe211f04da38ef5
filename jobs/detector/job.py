"""The declaration of the detector job."""

import threading
from functools import partial

import orjson
from pyspark.sql import DataFrame

from infra.contract.topics import TopicMap
from jobs.detector.settings import DetectorSettings
from jobs.detector.shard import Shard
from jobs.incidents import job as incidents
from jobs.runtime.fold import Input, Output, fold_shards, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.packed_state import Parts
from jobs.runtime.runner import Gate, Queries, run_queries, start_job
from jobs.runtime.settings import Settings

SCHEMA_VERSION = b"novelties/2"


def _build(context: Context) -> DataFrame:
    statistics, novelties = context.topics["statistics"].name, context.topics["novelties"].name
    folded = fold_shards(context.stream("statistics", statistics), partial(_fold, settings_for(context.topics)))
    return folded.transform(to_records, novelties, same_partition=True)


def settings_for(topics: TopicMap) -> DetectorSettings:
    """The settings of one shard: its part of the fleet's alarm budget follows from how many there are."""
    return DetectorSettings(shards=topics["statistics"].partitions)


def _fold(settings: DetectorSettings, state: Parts | None, batch: Input) -> tuple[Parts, list[Output]]:
    one = Shard(settings, state)
    before, novelties, watermark = one.watermark, one.feed(batch.values), one.watermark
    headers = (("kappa.source", f"{batch.topic}/{batch.shard}".encode()), ("kappa.schema", SCHEMA_VERSION))
    outputs = [
        Output(novelty["machine"], orjson.dumps(novelty), novelty["time_unix_nano"], headers) for novelty in novelties
    ]
    if watermark > before:
        outputs.append(Output.of_watermark(watermark))
    return one.dump(), outputs


JOB = Job(
    name="detector",
    sources=lambda topics: {"statistics": (topics["statistics"].name,)},
    build=_build,
)


def start(context: Context, gate: Gate) -> Queries:
    """The detector's query, and the one that makes incidents of the novelties."""
    return {**start_job(JOB, context, gate), **start_job(incidents.JOB, context.own(), gate)}


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Run both until `stop`. Blocks; raises what one of them failed with."""
    run_queries(JOB.name, start, settings, topics, stop)
