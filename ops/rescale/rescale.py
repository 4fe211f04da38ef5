"""A generation with more partitions that goes on from a savepoint of all jobs, its state divided by machine.

- Enrichment, which has no state, reads on from where it stood, and writes into the new topics.
- Each fold begins with its share of the states: those of a partition's machines that are now in a partition of their
  own (division.py), at the watermark that they had.
- What one job of the savepoint had written and another had not read yet is carried over (carry.py).

So each shard of the new generation reads on in its part of its parent's log. Archive and indexer begin with what the
new topics hold.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from connectors.kafka.offsets import Log
from infra.contract.offsets import Offsets
from infra.contract.topics import load_topics
from infra.errors import UserError
from jobs.runtime.checkpoint import INITIAL
from jobs.runtime.fold import INITIAL_SCHEMA
from jobs.runtime.job import Fold
from jobs.runtime.job_settings import load_job_settings
from jobs.runtime.packed_state import Parts
from jobs.runtime.settings import Settings
from jobs.runtime.shard_state import Opener
from jobs.table import JOBS
from ops.replay import run
from ops.replay.plan import SAVEPOINT, Request, plan
from ops.replay.registry import Generation, Platform, Registry, write
from ops.rescale.carry import Stretch, carry
from ops.rescale.division import Division
from ops.savepoints import chain, savepoints
from ops.savepoints.saved import ChainSavepoint, Savepoint
from ops.state.state import shards

FIRST = "enrichment"  # of the chain: its output is the first sharded topic
_SHARDED = "events"

Report = Callable[[str], None]


@dataclass(frozen=True)
class Rescaling:
    """What is asked for: a generation of this name with so many partitions, and what runs it."""

    name: str
    partitions: int
    platform: Platform = "processes"
    image: str | None = None


class Rescaler:
    """Makes the generation of one rescaling from one savepoint. Nothing is created by the constructor."""

    def __init__(self, wanted: Rescaling, saved: ChainSavepoint, registry: Registry, settings: Settings) -> None:
        """Raises UserError if there can be no such generation, or it can't go on from the savepoint."""
        self.saved, self._settings, self._log = saved, settings, Log(settings.kafka_bootstrap)
        declared = load_topics(settings.topics_file)
        self._base = registry.topics(saved.generation, declared)
        self.division = Division.into(wanted.partitions, self._base[_SHARDED].partitions)
        self.generation = self._planned(wanted, registry)
        registry.generations[wanted.name] = self.generation
        self._topics = registry.topics(wanted.name, declared)
        self._own = settings.model_copy(update={"generation": wanted.name})
        self._folds = dict(self._jobs_with_state())
        self._check_fits()

    def _planned(self, wanted: Rescaling, registry: Registry) -> Generation:
        saved = self.saved
        if FIRST not in saved.queries:
            raise UserError(f"savepoint {saved.name!r}: {FIRST} {chain.NO_BATCH}, or isn't in it; take another one")
        begin = f"{SAVEPOINT}{saved.name}"
        request = Request(
            wanted.name, FIRST, begin, base=saved.generation, platform=wanted.platform, image=wanted.image
        )
        planned = plan(request, self._settings, registry, self._log, saved.queries[FIRST].offsets)
        begin_ms = first_common_ms(saved, self._log)
        changes = {"partitions": wanted.partitions, "begin_ms": begin_ms, "state": "restoring"}
        return planned.model_copy(update=changes)

    def _check_fits(self) -> None:
        for job in (FIRST, *self._folds):
            if (saved := self.saved.queries.get(job)) is None:
                continue
            # Each checkpoint is a new one.
            saved = saved.model_copy(update={"shuffle_partitions": self._settings.shuffle_partitions})
            savepoints.check_fits(saved, self._own, load_job_settings(JOBS[job]), self._topics, self._log)

    def _jobs_with_state(self) -> Iterator[tuple[str, Fold]]:
        for job in self.generation.jobs:
            if JOBS[job].is_replayable and isinstance(code := JOBS[job].implementation(), Fold):
                yield job, code

    def run(self, spark: SparkSession, report: Report) -> Generation:
        """Make the generation's topics and checkpoints, and write its plan; gives that.

        Raises UserError if the savepoint is damaged, or the name's topics hold records of a rescaling that was cut.
        """
        report("reading the savepoint's files")
        chain.verify(self.saved, self._settings)
        run.prepare(self.generation, self._topics, self._settings)
        write(self._settings.kafka_bootstrap, self.generation)
        starts: dict[str, Offsets] = {}
        for stretch in self._stretches():
            report(f"carrying over what is under way in {stretch.topic}")
            starts |= carry(stretch, self.division, self._settings.kafka_bootstrap)
        for job, fold in self._folds.items():
            if saved := self.saved.queries.get(job):
                report(f"dividing the state of {job}")
                self._divide(saved, fold, spark)
        done = self.generation.model_copy(update={"state": "replaying", "starts": starts})
        write(self._settings.kafka_bootstrap, done)
        return done

    def _stretches(self) -> Iterator[Stretch]:
        """Of each sharded topic that jobs with state read, what the slowest of them had not read yet."""
        readers: dict[str, dict[str, Offsets]] = {}
        for job in self._folds:
            (key,) = (one for one in JOBS[job].reads if isinstance(one, str))
            saved = self.saved.queries.get(job)
            offsets = saved.offsets if saved else self._log.starts([self._base[key].name])
            readers.setdefault(key, {})[job] = offsets
        for key, by_job in readers.items():
            topic = self._base[key].name
            ends = {place: end for place, end in self.saved.ends.items() if place[0] == topic}
            yield Stretch(topic, self._topics[key].name, by_job, ends)

    def _divide(self, saved: Savepoint, fold: Fold, spark: SparkSession) -> None:
        """Put the states of a job's shards, divided, where its first batch begins with them."""
        states = shards(spark, f"{self._settings.savepoint_of(self.saved.name)}/{chain.folder_of(saved.job)}")
        opener = fold.opener(load_job_settings(JOBS[saved.job]), self._topics)
        divided = states if fold.whole_topic else divide(states, opener, self.division)
        rows = [(shard, name, part) for shard, parts in divided.items() for name, part in parts.items()]
        target = f"{self._own.checkpoint_of(saved.job)}/{INITIAL}"
        spark.createDataFrame(rows, INITIAL_SCHEMA).coalesce(1).write.mode("overwrite").parquet(target)


def divide(states: Mapping[int, Parts], opener: Opener, division: Division) -> dict[int, Parts]:
    """The states of shards, each divided into those of its parts: of each, what its own machines have left in it."""
    found: dict[int, Parts] = {}
    for parent, parts in states.items():
        for part, child in enumerate(division.children(parent)):
            state = opener(parts)
            state.retain(division.mine(part))
            found[child] = state.dump()
    return found


def first_common_ms(saved: ChainSavepoint, log: Log) -> int:
    """The time, in ms, from which on both generations have all there is: `kappa replay diff` compares them from there.

    Of the telemetry that enrichment had read the last record counts, too: one record of `events` has the time of the
    first of those that it was made of.
    """
    return max(log.times(saved.queries[FIRST].offsets | saved.ends).values(), default=0) + 1
