"""The query that makes incidents of novelties. It runs in the detector's application: they are few."""

from functools import partial

import orjson
from pyspark.sql import DataFrame

from jobs.incidents.fold import fold
from jobs.runtime.fold import Input, Output, fold_together, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.packed_state import Parts

NAME = "incidents"
SCHEMA_VERSION = b"incidents/1"


def _build(context: Context) -> DataFrame:
    novelties = context.topics["novelties"]
    folded = fold_together(context.stream("novelties", novelties.name), partial(_fold, novelties.partitions))
    return folded.transform(to_records, context.topics[NAME].name, same_partition=False)


def _fold(partitions: int, state: Parts | None, batch: Input) -> tuple[Parts, list[Output]]:
    after, incidents = fold(state, zip(batch.partitions, batch.values, strict=True), partitions)
    headers = (("kappa.schema", SCHEMA_VERSION),)
    return after, [
        Output(incident["id"], orjson.dumps(incident), incident["time_unix_nano"], headers) for incident in incidents
    ]


JOB = Job(
    name=NAME,
    sources=lambda topics: {"novelties": (topics["novelties"].name,)},
    build=_build,
)
