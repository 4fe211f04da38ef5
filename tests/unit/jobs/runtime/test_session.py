"""Secrets of Spark's configuration stay off the command line of its JVM."""

import os
import stat

from jobs.runtime.session import _off_the_command_line

KEY = "spark.hadoop.fs.s3a.secret.key"


def test_they_go_in_a_file_that_is_gone_once_the_jvm_has_started(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    with _off_the_command_line({KEY: "a\\b"}, tmp_path):
        (file,) = tmp_path.iterdir()
        assert os.environ["PYSPARK_SUBMIT_ARGS"] == f"--properties-file {file} pyspark-shell"
        assert file.read_text() == f"{KEY}=a\\\\b\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert os.environ["PYSPARK_SUBMIT_ARGS"] == "pyspark-shell"
    assert list(tmp_path.iterdir()) == []


def test_without_any_nothing_changes(tmp_path, monkeypatch):
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    with _off_the_command_line({}, tmp_path):
        assert "PYSPARK_SUBMIT_ARGS" not in os.environ
    assert list(tmp_path.iterdir()) == []
