"""The declaration of the archive job: it appends every archived topic to Delta tables, one query for each table."""

from dataclasses import dataclass
from functools import partial

from pydantic_settings import BaseSettings

from connectors.sinks.delta import DeltaSink
from infra.contract.jobs import Job
from infra.contract.topics import TopicMap
from jobs.archive.tables import Table, tables
from jobs.archive.transform import rows
from jobs.runtime.job import Context, Query, Sources

_SOURCE = "log"
# Of its trigger interval: after 5 s of a minute. Intervals begin when windows end whose results are waited for.
_PHASE = 1 / 12


@dataclass(frozen=True)
class Tables:
    """The implementation of a job that appends the records of its topics to Delta tables."""

    def check_settings(self, own: BaseSettings | None, topics: TopicMap) -> None:
        """Does nothing: the archive has no settings of its own."""

    def sources(self, job: Job, topics: TopicMap) -> Sources:
        """The topics of all its queries together: each reads its own ones, by the same source name."""
        return {_SOURCE: job.inputs(topics)}

    def queries(self, job: Job, context: Context) -> list[Query]:
        """One query for each Delta table."""
        return [_query(table, context) for table in tables(context.topics)]


def _query(table: Table, context: Context) -> Query:
    seconds = context.settings.archive_trigger_seconds
    stream = context.stream(_SOURCE, table.topics, headers=True, seconds=seconds)
    sink = partial(DeltaSink, context.settings.delta_of(table.name), table.partition_by)
    return Query(table.query, rows(stream, table), sink, seconds, phase_seconds=_PHASE * seconds)


TABLES = Tables()
