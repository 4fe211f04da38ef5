from jobs.enrichment.deduplicate import Deduplicator


def record(offset, batch=0, partition=0, **fields):
    source = {"topic": "telemetry.lines", "partition": partition, "offset": offset}
    return {"id": f"telemetry.lines-{partition}-{offset}-{batch}", "source": source, **fields}


def test_what_a_restart_repeats_is_dropped():
    sequence = [
        record(1),
        record(1, 1),
        record(5),
        record(2, partition=1),
        record(1),
        record(1, 1),
        record(5),
        record(6),
    ]
    deduplicator = Deduplicator()
    assert [deduplicator.is_new(one) for one in sequence] == [True, True, True, True, False, False, False, True]


def test_watermarks_and_retried_records_pass():
    deduplicator = Deduplicator()
    assert deduplicator.is_new(record(7))
    assert deduplicator.is_new(record(3, retried=True))
    assert deduplicator.is_new({"watermark_unix_nano": 5})
    assert not deduplicator.is_new(record(7))
