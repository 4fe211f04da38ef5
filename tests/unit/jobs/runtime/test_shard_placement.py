from pyspark.sql import functions as F

from jobs.runtime.shard_placement import SHARDS, salted


def test_a_shard_and_its_salt_hash_to_the_shard(spark):
    shard = F.col("id").cast("int")
    rows = spark.range(SHARDS + 2).select("id", F.hash(shard, salted(shard)).alias("hash"))
    found = {row.id: row.hash for row in rows.collect()}
    assert {number: found[number] for number in range(SHARDS)} == {number: number for number in range(SHARDS)}
    assert len(found) == SHARDS + 2  # no key is null


def test_groups_of_shards_lie_evenly_in_any_number_of_tasks(spark):
    shard = F.col("id").cast("int").alias("shard")
    keys = spark.range(12).select(shard, salted(shard))
    for tasks in (1, 2, 3, 4, 12):
        lying = keys.repartition(tasks, "shard", "salt").select("shard", F.spark_partition_id().alias("task"))
        assert {row.shard: row.task for row in lying.collect()} == {number: number % tasks for number in range(12)}
