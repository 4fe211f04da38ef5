"""The way back to the former image, whose code this is.

The sink is exactly-once whatever image repeats a batch, so the former image goes on from its checkpoints wherever it
can read them. Only where it can't, as the new image has packed another state, is the savepoint put back in their place:
what the new image has written stays, and what follows from the records that it had read isn't written again. So of the
same results none is lost or doubled; of those that the two images write at other records: docs/how-to/upgrade.md,
'What is not guarded'.
"""

from dataclasses import dataclass

from pyspark.sql import SparkSession

from infra.contract.topics import TopicMap, load_topics
from infra.errors import UserError
from jobs.runtime.job import Fold
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.offset_log import OffsetLogEntry
from jobs.runtime.session import session
from jobs.runtime.settings import Settings
from jobs.table import JOBS
from ops.replay.registry import Registry
from ops.savepoints import chain, savepoints
from ops.savepoints.saved import ChainSavepoint
from ops.savepoints.store import Store
from ops.state.state import shards
from ops.upgrade.mark import Mark

GOES_ON = "the former image goes on from its checkpoints: start it"


def back(mark: Mark, settings: Settings) -> str:
    """Put the savepoint back if this version can't go on from the checkpoints; returns what was done, in one line.

    Raises UserError if it is needed and doesn't fit; nothing is changed then.
    """
    if mark.savepoint is None:
        return GOES_ON
    settings.check_storage_is_shared()
    registry = Registry.read(settings.kafka_bootstrap)
    topics = registry.topics(settings.generation, load_topics(settings.topics_file))
    saved = savepoints.read(mark.savepoint, settings)
    if not isinstance(saved, ChainSavepoint):
        raise UserError(f"savepoint {mark.savepoint!r}: is of one job; an upgrade goes back to one of all jobs")
    with session("kappa.upgrade", settings) as spark:
        why = Checkpoints(settings, registry, topics, spark).refusal(saved)
    if why is None:
        return GOES_ON
    chain.restore(saved, settings, registry, topics)
    return f"savepoint {saved.name} is back in place ({why}): start the former image"


@dataclass(frozen=True)
class Checkpoints:
    """The checkpoints of the settings' generation, read as the jobs of this version would."""

    settings: Settings
    registry: Registry
    topics: TopicMap
    spark: SparkSession

    def refusal(self, saved: ChainSavepoint) -> str | None:
        """Why this version can't go on from that of one of the savepoint's queries; None if it can from all."""
        for query, one in saved.queries.items():
            try:
                self.open(query, one.job)
            except Exception as error:  # whatever it is: Spark's, or that of a state that holds something else
                first, *_ = str(error).splitlines() or [type(error).__name__]
                return f"{query}: {first}"
        return None

    def open(self, query: str, job: str) -> None:
        """Read a checkpoint's plan, and open the state of each shard. Raises what the job would end with."""
        checkpoint, code = self.settings.checkpoint_of(query), JOBS[job].implementation()
        store = Store.of(checkpoint)
        OffsetLogEntry.parse(store.read(f"offsets/{store.batches('offsets')[-1]}").decode())
        if isinstance(code, Fold):
            changes = self.registry.find(self.settings.generation).changes(job)
            opened = code.opener(load_job_settings(JOBS[job], changes), self.topics)
            for state in shards(self.spark, checkpoint).values():
                opened(state)
