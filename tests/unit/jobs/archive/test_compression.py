from pathlib import Path

import pyarrow.parquet as pq

from tests.unit.jobs.archive.test_maintenance import append, numbers

CODEC = "spark.sql.parquet.compression.codec"


def codecs(path):
    files = (pq.ParquetFile(file).metadata for file in Path(path).rglob("*.parquet"))
    return {one.row_group(0).column(0).compression for one in files}


def test_a_table_that_was_written_with_snappy_goes_on_with_zstd(spark, tmp_path):
    path, today = str(tmp_path / "log"), spark.conf.get(CODEC)
    spark.conf.set(CODEC, "snappy")
    append(spark, path, 0)
    before = codecs(path)
    spark.conf.set(CODEC, today)
    append(spark, path, 1)
    assert (before, codecs(path)) == ({"SNAPPY"}, {"SNAPPY", "ZSTD"})
    assert numbers(spark, path) == list(range(20))
