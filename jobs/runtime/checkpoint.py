"""What Spark's checkpoint says of a batch: the query's identity and the offsets up to which each source was read."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import orjson
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from connectors.java_class import java_class
from infra.contract.offsets import Offsets, from_nested, to_nested
from jobs.runtime.offset_log import OffsetLogEntry

WRITTEN = "written.json"
_BEGINNING = "sources/{}/0"  # where Spark begins to read a source of which its last plan says nothing
INITIAL = "initial"
_CHECKPOINTING = "org.apache.spark.sql.execution.streaming.checkpointing"


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint, on any file system that Hadoop knows."""

    spark: SparkSession
    path: str

    def run(self) -> str:
        """Spark's id of the query: it stays for as long as this checkpoint does."""
        return str(json.loads(self._read("metadata"))["id"])

    def begin(self) -> str:
        """Spark's id of the query; a checkpoint that has none yet gets it, from whichever copy of the job is first."""
        if not self._exists("metadata"):
            self._create("metadata", json.dumps({"id": str(uuid4())}))
        return self.run()

    def planned(self) -> int:
        """The number of the batch that was planned last; -1 if none was."""
        return self._last("offsets")

    def ends(self, batch_id: int) -> Mapping[str, Offsets]:
        """Where batch `batch_id` ends, by the name of each Kafka source of the query."""
        return self._plan(batch_id).sources

    def end_offsets(self, batch_id: int) -> Offsets:
        """The same over all sources."""
        return self._plan(batch_id).offsets()

    def has_read(self, source: str) -> bool:
        """Whether a query over this checkpoint has ever read this source."""
        return self._exists(_BEGINNING.format(source))

    def begin_again(self, source: str, offsets: Offsets) -> None:
        """Have Spark begin at these offsets with a source that its last plan doesn't have."""
        nested = orjson.dumps(to_nested(offsets), option=orjson.OPT_NON_STR_KEYS).decode()
        self._write(_BEGINNING.format(source), f"\0v1\n{nested}")

    def written(self) -> Offsets:
        """Up to where of its input this job has written the results before it was put back to an older state.

        `kappa savepoint restore` notes that here; empty of a checkpoint that was never put back.
        """
        return from_nested(json.loads(self._read(WRITTEN))) if self._exists(WRITTEN) else {}

    def initial(self) -> DataFrame | None:
        """The states with which a fold begins (`jobs.runtime.fold`), if it was given any: `kappa rescale` does.

        Once a batch is done they are in its own state, and are deleted here.
        """
        if not self._exists(INITIAL):
            return None
        if self._last("commits") >= 0:
            path, files = self._path(INITIAL)
            files.delete(path, True)
            return None
        return self.spark.read.parquet(f"{self.path}/{INITIAL}")

    def pinned(self, name: str, lines: list[str]) -> list[str]:
        """What the file `name` in this checkpoint says; a checkpoint that has none gets it, if no query has begun."""
        if not self._exists(name) and not self._exists("metadata"):
            self._write(name, "\n".join(lines))
        return self._read(name).splitlines() if self._exists(name) else []

    def _plan(self, batch_id: int) -> OffsetLogEntry:
        return OffsetLogEntry.parse(self._read(f"offsets/{batch_id}"))

    def _last(self, log: str) -> int:
        path, files = self._path(log)
        names = [entry.getPath().getName() for entry in files.listStatus(path)] if files.exists(path) else []
        return max((int(name) for name in names if name.isdecimal()), default=-1)

    def _create(self, name: str, text: str) -> None:
        """Make a file, whole or not at all, unless another copy of the job does."""
        path, files = self._path(name)
        files.mkdirs(path.getParent())
        managers = java_class(self.spark, f"{_CHECKPOINTING}.CheckpointFileManager")
        configuration = self.spark._jsparkSession.sessionState().newHadoopConf()
        manager = managers.create(path.getParent(), configuration)
        stream = manager.createAtomic(path, False)
        try:
            stream.write(bytearray(text.encode()))
            stream.close()
        except Py4JJavaError:
            if not self._exists(name):
                raise

    def _path(self, name: str) -> Any:
        path = java_class(self.spark, "org.apache.hadoop.fs.Path")(f"{self.path}/{name}")
        return path, path.getFileSystem(self.spark._jsc.hadoopConfiguration())

    def _exists(self, name: str) -> bool:
        path, files = self._path(name)
        return bool(files.exists(path))

    def _write(self, name: str, text: str) -> None:
        path, files = self._path(name)
        stream = files.create(path)
        try:
            stream.write(bytearray(text.encode()))
        finally:
            stream.close()

    def _read(self, name: str) -> str:
        path, files = self._path(name)
        stream = files.open(path)
        try:
            return str(java_class(self.spark, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
        finally:
            stream.close()
