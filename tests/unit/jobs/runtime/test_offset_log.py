"""Spark's offset log: on an entry as Spark 4.2 writes it."""

from dataclasses import replace

from jobs.runtime.offset_log import OffsetLogEntry

ENTRY = """v2
{"batchWatermarkMs":0,"batchTimestampMs":1760000000000,"conf":{"spark.sql.shuffle.partitions":"4"}}
otlp_metrics_json:{"telemetry.otlp.metrics":{"1":20,"0":10}}
syslog_json:{"telemetry.syslog":{"0":7},"telemetry.lines":{"0":0}}"""


def test_an_entry_says_how_far_each_source_is_read():
    entry = OffsetLogEntry.parse(ENTRY)
    assert entry.version == "v2"
    assert entry.sources == {
        "otlp_metrics_json": {("telemetry.otlp.metrics", 1): 20, ("telemetry.otlp.metrics", 0): 10},
        "syslog_json": {("telemetry.syslog", 0): 7, ("telemetry.lines", 0): 0},
    }


def test_an_entry_is_written_as_it_was_read():
    assert OffsetLogEntry.parse(ENTRY).format() == ENTRY
    assert OffsetLogEntry.parse(ENTRY + "\n").format() == ENTRY


def test_other_offsets_can_be_put_in():
    entry = OffsetLogEntry.parse(ENTRY)
    changed = replace(entry, sources={**entry.sources, "syslog_json": {("telemetry.syslog.v2", 0): 0}})
    assert changed.format().splitlines()[2:] == [
        'otlp_metrics_json:{"telemetry.otlp.metrics":{"1":20,"0":10}}',
        'syslog_json:{"telemetry.syslog.v2":{"0":0}}',
    ]
