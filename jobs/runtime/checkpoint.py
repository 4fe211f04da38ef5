"""What Spark's checkpoint says of a batch: the query's identity and the offsets up to which each source was read."""

import json
from dataclasses import dataclass

from pyspark.sql import SparkSession

Offsets = dict[tuple[str, int], int]  # (topic, partition) -> the next offset to read


@dataclass(frozen=True)
class Checkpoint:
    """A query's checkpoint, on any file system that Hadoop knows."""

    spark: SparkSession
    path: str

    def run(self) -> str:
        """Spark's id of the query: it stays for as long as this checkpoint does."""
        return str(json.loads(self._read("metadata"))["id"])

    def end_offsets(self, batch_id: int) -> Offsets:
        """Where batch `batch_id` ends, over all Kafka sources of the query."""
        # Spark's offset log, version 2: a version line, a line of metadata, then a line `name:{offsets}` a source.
        sources = self._read(f"offsets/{batch_id}").splitlines()[2:]
        return {
            (topic, int(partition)): offset
            for source in sources
            for topic, partitions in json.loads(source.split(":", 1)[1]).items()
            for partition, offset in partitions.items()
        }

    def _read(self, name: str) -> str:
        jvm = self.spark._jvm
        assert jvm is not None
        path = jvm.org.apache.hadoop.fs.Path(f"{self.path}/{name}")
        stream = path.getFileSystem(self.spark._jsc.hadoopConfiguration()).open(path)
        try:
            return str(jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()
