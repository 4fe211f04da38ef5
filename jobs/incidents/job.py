"""The query that makes incidents of novelties. It runs in the detector's application: they are few."""

from functools import partial

import orjson
from pyspark.sql import DataFrame

from jobs.incidents.fold import Incidents
from jobs.runtime.fold import fold_together, to_records
from jobs.runtime.job import Context, Job
from jobs.runtime.packed_state import Parts
from jobs.runtime.shard_state import Input, Output

NAME = "incidents"
SCHEMA_VERSION = b"incidents/1"


def _build(context: Context) -> DataFrame:
    novelties = context.topics["novelties"]
    folded = fold_together(context.stream("novelties", novelties.name), partial(IncidentsShard, novelties.partitions))
    return folded.transform(to_records, context.topics[NAME].name, same_partition=False)


class IncidentsShard:
    """The state of all partitions of `novelties`, see `jobs.runtime.shard_state`: gives the records of `incidents`."""

    def __init__(self, partitions: int, parts: Parts | None = None) -> None:
        self.incidents = Incidents(partitions, parts)

    def feed(self, batch: Input) -> list[Output]:
        """Take records of `novelties`; returns those of `incidents`."""
        found = self.incidents.feed(zip(batch.partitions, batch.values, strict=True))
        headers = (("kappa.schema", SCHEMA_VERSION),)
        return [Output(one["id"], orjson.dumps(one), one["time_unix_nano"], headers) for one in found]

    def dump(self) -> Parts:
        """The state as parts."""
        return self.incidents.dump()


JOB = Job(
    name=NAME,
    sources=lambda topics: {"novelties": (topics["novelties"].name,)},
    build=_build,
)
