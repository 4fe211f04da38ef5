"""The archive job: every topic into Delta, each table by a query of its own."""

import threading

from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from connectors.sinks import delta
from infra.contract.topics import TopicMap
from jobs.archive.tables import Table, tables
from jobs.runtime.checkpoint import Checkpoint
from jobs.runtime.commits import BatchCommitter
from jobs.runtime.job import Context
from jobs.runtime.kill_points import reach
from jobs.runtime.runner import Gate, Queries, run_queries, sink_settings, start_query
from jobs.runtime.settings import Settings

NAME = "archive"


def run(settings: Settings, topics: TopicMap, stop: threading.Event) -> None:
    """Run the archive's queries until `stop`. Blocks; raises what a query failed with."""
    run_queries(NAME, start, settings, topics, stop)


def start(context: Context, gate: Gate) -> Queries:
    """Start a query for each table."""
    queries = [TableQuery(table, context) for table in tables(context.topics)]
    return {query.name: query.start(gate) for query in queries}


class TableQuery:
    """The query that fills one table."""

    def __init__(self, table: Table, context: Context) -> None:
        self.table, self.context = table, context
        self.name = f"{NAME}.{table.name}"
        settings = context.settings
        self.path = settings.delta_of(table.name)
        self.checkpoint = Checkpoint(context.spark, settings.checkpoint_of(self.name))
        self.committer: BatchCommitter | None = None

    def start(self, gate: Gate) -> StreamingQuery:
        """Start it from its checkpoint."""
        seconds = self.context.settings.archive_trigger_seconds
        stream = self.context.stream("log", *(t.name for t in self.table.topics), headers=True, seconds=seconds)
        return start_query(
            self.name, self.table.rows(stream), gate.guard(self.name, self._write), self.context, seconds
        )

    def _write(self, frame: DataFrame, batch_id: int) -> None:
        query = self.context.settings.query_of(self.name)
        if self.committer is None:
            self.committer = BatchCommitter(sink_settings(query, self.checkpoint, self.context.settings))
        self.committer.check(batch_id)
        delta.append(frame, self.path, f"{query}.{self.checkpoint.run()}", batch_id, self.table.partition_by)
        reach("written")
        self.committer.commit(batch_id, self.checkpoint.end_offsets(batch_id))
        reach("closed")
