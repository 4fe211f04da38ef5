"""The declaration of the statistics job."""

import threading
from functools import partial

from pyspark.sql import DataFrame

from infra.contract.topics import TopicMap
from infra.errors import UserError
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.fold import fold_shards, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.runner import Gate, Queries, run_queries, start_job
from jobs.runtime.settings import Settings
from jobs.statistics.settings import Windows, load_windows
from jobs.statistics.shard import EARLY, Shard

NAME = "statistics"


def prepare(context: Context) -> None:
    """To be called before the query is built. Raises UserError if its checkpoint is one of other windows."""
    settings = context.settings
    check_windows(load_windows(), Checkpoint(context.spark, settings.checkpoint_of(NAME)), settings.generation)


def _build(context: Context) -> DataFrame:
    return build(context, load_windows())


def build(context: Context, windows: Windows) -> DataFrame:
    """The records of `statistics` and `statistics.early`, of these windows over `events`."""
    events, statistics, early = (context.topics[name].name for name in ("events", NAME, EARLY))
    folded = fold_shards(context.stream("events", events), partial(Shard, windows, early=early))
    return folded.transform(to_records, statistics, same_partition=True)


def check_windows(windows: Windows, checkpoint: Checkpoint, generation: str) -> None:
    """Raises UserError if the state in `checkpoint` was gathered by other windows; notes these in a new one."""
    now, then = windows.lines, checkpoint.pinned("windows", windows.lines)
    if now != then:
        added, gone = (
            ", ".join(line for line in one if line not in other) for one, other in ((now, then), (then, now))
        )
        raise UserError(
            f"KAPPA_STATISTICS_WINDOWS: generation {generation!r} began with other windows: without "
            f"{added or 'any new'}, with {gone or 'less'}; "
            "put them back, or start a new one: kappa run statistics --generation NAME"
        )


JOB = Job(
    name=NAME,
    sources=lambda topics: {"events": (topics["events"].name,)},
    build=_build,
)


def start(context: Context, gate: Gate) -> Queries:
    """The job's query, over a checkpoint of the declared windows."""
    prepare(context)
    return start_job(JOB, context, gate)


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Run the job until `stop`. Raises UserError before anything starts if the windows make no sense."""
    load_windows()
    run_queries(NAME, start, settings, topics, stop)
