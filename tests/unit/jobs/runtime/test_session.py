"""How Spark's JVM is started: without secrets on its command line, with our files and the installed PySpark."""

import os
import stat
from pathlib import Path

import pyarrow.parquet as pq
import pyspark

from connectors.java_class import java_class
from jobs.runtime.session import _home_without_archive, _off_the_command_line

KEY = "spark.hadoop.fs.s3a.secret.key"


def test_secrets_go_in_a_file_that_is_gone_once_the_jvm_has_started(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    with _off_the_command_line({KEY: "a\\b"}, tmp_path):
        (file,) = tmp_path.iterdir()
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == f"--properties-file {file} pyspark-shell"
        assert file.read_text() == f"{KEY}=a\\\\b\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "pyspark-shell"
    assert list(tmp_path.iterdir()) == []


def test_without_secrets_nothing_changes(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    with _off_the_command_line({}, tmp_path):
        assert "PYSPARK_SUBMIT_ARGS" not in os.environ
    assert list(tmp_path.iterdir()) == []


def test_python_processes_import_the_installed_pyspark(spark):
    """From an archive, each would compile it."""
    (found,) = spark.sparkContext.parallelize([0], 1).map(lambda _: __import__("pyspark").__file__).collect()
    assert found == pyspark.__file__


def test_the_users_spark_home_stays(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    with _home_without_archive(tmp_path):
        assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert os.environ["SPARK_HOME"] == "/opt/spark"
    assert list(tmp_path.iterdir()) == []


def test_without_one_it_is_ours_while_the_jvm_starts(tmp_path, monkeypatch):
    monkeypatch.delenv("SPARK_HOME", raising=False)
    for _ in range(2):
        with _home_without_archive(tmp_path):
            home = Path(os.environ["SPARK_HOME"])
            assert (home / "bin" / "spark-submit").is_file()
            assert not (home / "python").exists()
        assert "SPARK_HOME" not in os.environ


def test_local_files_get_their_permissions_without_a_process(spark, tmp_path):
    path = java_class(spark, "org.apache.hadoop.fs.Path")(str(tmp_path / "file"))
    files = path.getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())
    assert files.getClass().getName() == "kappa.LocalFiles"
    files.create(path).close()
    files.setPermission(path, java_class(spark, "org.apache.hadoop.fs.permission.FsPermission")("640"))
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o640


def test_only_doubles_are_written_without_a_dictionary(spark, tmp_path):
    row = {"series": ["a"] * 1_000, "mean": [1.5] * 1_000}
    frame = spark.createDataFrame([{"statistics": row}], "statistics struct<series:array<string>,mean:array<double>>")
    frame.coalesce(1).write.parquet(str(tmp_path / "table"))
    [file] = (tmp_path / "table").glob("*.parquet")
    group = pq.ParquetFile(file).metadata.row_group(0)
    columns = [group.column(number) for number in range(group.num_columns)]
    assert {column.path_in_schema: any("DICTIONARY" in one for one in column.encodings) for column in columns} == {
        "statistics.series.list.element": True,
        "statistics.mean.list.element": False,
    }
