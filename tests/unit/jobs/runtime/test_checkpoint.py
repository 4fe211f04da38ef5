"""Reading Spark's checkpoint: on files as Spark 4.2 writes them."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from jobs.runtime.checkpoint import Checkpoint

METADATA = '{"id":"5d1a3a52-6d52-4f6f-9e6b-7f5c3e0f7c11"}'
OFFSETS = """v2
{"batchWatermarkMs":0,"batchTimestampMs":1760000000000,"conf":{"spark.sql.shuffle.partitions":"4"}}
otlp_metrics_json:{"telemetry.otlp.metrics":{"1":20,"0":10}}
syslog_json:{"telemetry.syslog":{"0":7},"telemetry.lines":{"0":0}}
"""


class Files(Checkpoint):
    """A checkpoint whose files are given."""

    def _read(self, name):
        return {"metadata": METADATA, "offsets/12": OFFSETS}[name]

    def _exists(self, name):
        return name == "metadata"


def test_the_run_is_sparks_id_of_the_query():
    assert Files(None, "c").run() == "5d1a3a52-6d52-4f6f-9e6b-7f5c3e0f7c11"


def test_the_end_of_a_batch_is_that_of_all_sources_that_had_begun():
    assert Files(None, "c").end_offsets(12) == {
        ("telemetry.otlp.metrics", 0): 10,
        ("telemetry.otlp.metrics", 1): 20,
        ("telemetry.syslog", 0): 7,
        ("telemetry.lines", 0): 0,
    }


def test_a_batch_that_was_not_planned_has_no_end():
    with pytest.raises(KeyError):
        Files(None, "c").end_offsets(13)


def test_the_batch_that_was_planned_last_is_read_from_the_log(spark, tmp_path):
    checkpoint = Checkpoint(spark, str(tmp_path))
    assert checkpoint.planned() == -1
    (tmp_path / "offsets").mkdir()
    for name in ("9", "10", ".11.crc"):
        (tmp_path / "offsets" / name).touch()
    assert checkpoint.planned() == 10


def test_of_copies_that_begin_a_checkpoint_at_once_all_have_the_same_identity(spark, tmp_path):
    checkpoint = Checkpoint(spark, str(tmp_path / "new"))
    with ThreadPoolExecutor(8) as pool:
        found = set(pool.map(lambda _: checkpoint.begin(), range(16)))
    assert found == {checkpoint.run()}


def test_a_file_of_a_local_checkpoint_is_made_once(spark, tmp_path):
    """Spark's own way has a moment in which the second takes the first one's place."""
    checkpoint = Checkpoint(spark, str(tmp_path))
    with ThreadPoolExecutor(8) as pool:
        for number in range(20):
            list(pool.map(lambda text, name=f"f{number}": checkpoint._create(name, str(text)), range(8)))
            first = (tmp_path / f"f{number}").read_bytes()
            checkpoint._create(f"f{number}", "late")
            assert (tmp_path / f"f{number}").read_bytes() == first
    assert not list(tmp_path.glob(".*tmp*"))


def test_up_to_where_it_has_written_before_is_noted_in_it(monkeypatch):
    assert Files(None, "c").written() == {}
    monkeypatch.setattr(Files, "_exists", lambda _, name: name == "written.json")
    monkeypatch.setattr(Files, "_read", lambda *_: '{"statistics":{"0":90,"1":5}}')
    assert Files(None, "c").written() == {("statistics", 0): 90, ("statistics", 1): 5}


def test_the_end_of_a_batch_is_known_by_source():
    assert Files(None, "c").ends(12)["syslog_json"] == {("telemetry.syslog", 0): 7, ("telemetry.lines", 0): 0}


def test_a_source_begins_again_as_spark_notes_it(spark, tmp_path):
    checkpoint = Checkpoint(spark, str(tmp_path))
    assert not checkpoint.has_read("lines_json")
    checkpoint.begin_again("lines_json", {("lines", 0): 20})
    assert checkpoint.has_read("lines_json")
    assert (tmp_path / "sources/lines_json/0").read_bytes() == b'\0v1\n{"lines":{"0":20}}'
