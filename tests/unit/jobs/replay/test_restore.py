from pyspark.sql import functions as F

from jobs.replay.restore import between


def test_a_stretch_of_the_log_is_whole_though_times_do_not_ascend(spark):
    """Ticks, for one, are stamped earlier than what stands before them."""
    stamps = [100, 200, 150, 300, 250, 400]
    rows = [("events", 0, offset, stamp) for offset, stamp in enumerate(stamps)] + [("events", 1, 7, 120)]
    frame = spark.createDataFrame(rows, "topic string, partition int, offset long, timestamp_ms long")

    def kept(begin, end):
        found = between(frame, begin, end).orderBy("partition", F.col("offset")).collect()
        return [(row.partition, row.offset) for row in found]

    assert kept(160, 300) == [(0, 1), (0, 2)]
    assert kept(120, None) == [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 7)]
    assert kept(0, 251) == [(0, 0), (0, 1), (0, 2), (1, 7)]
