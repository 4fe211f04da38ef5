"""The declaration of the statistics job."""

from functools import partial

from pyspark.sql import DataFrame

from jobs.runtime.fold import fold_shards, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.runner import run_job, start_job
from jobs.statistics.settings import load_settings
from jobs.statistics.shard import fold


def _build(context: Context) -> DataFrame:
    events, statistics = context.topics["events"].name, context.topics["statistics"].name
    folded = fold_shards(context.stream("events", events), partial(fold, load_settings()))
    return folded.transform(to_records, statistics, same_partition=True)


JOB = Job(
    name="statistics",
    reads=lambda topics: (topics["events"].name,),
    writes=("statistics",),
    build=_build,
)

start = partial(start_job, JOB)
run = partial(run_job, JOB)
