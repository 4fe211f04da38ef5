"""Cuts a stretch of the archived log into steps of about so many records, each a range of offsets of each partition."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infra.contract.offsets import Offsets, Partition

MOST_BUCKETS = 5_000  # of each partition, that the driver holds
LEAST_MILLI = 1_000


class Bucket(NamedTuple):
    """What a partition has of a short time."""

    topic: str
    partition: int
    number: int  # of the bucket
    first: int  # offset
    last: int
    records: int


class Steps(NamedTuple):
    """Step n is of each partition what is from `bounds[n]` to before `bounds[n + 1]`."""

    bounds: list[Offsets]
    records: list[int]


def buckets(rows: DataFrame) -> list[Bucket]:
    """The archived rows by partition and short time of Kafka's timestamps."""
    first, last = rows.agg(F.min("timestamp_ms"), F.max("timestamp_ms")).collect()[0]
    if first is None:
        return []
    width = max(LEAST_MILLI, math.ceil((last - first + 1) / MOST_BUCKETS))
    number = F.floor((F.col("timestamp_ms") - first) / width).cast("int").alias("number")
    found = rows.groupBy("topic", "partition", number).agg(
        F.min("offset").alias("first"), F.max("offset").alias("last"), F.count("*").alias("records")
    )
    return [Bucket(*row) for row in found.collect()]


def cut(found: Sequence[Bucket], most: int) -> Steps:
    """Steps of whole buckets with at most so many records, unless a bucket alone has more."""
    numbers = _first_numbers(found, most)
    by_place: dict[Partition, list[Bucket]] = defaultdict(list)
    for bucket in found:
        by_place[bucket.topic, bucket.partition].append(bucket)
    bounds: list[Offsets] = [{} for _ in range(len(numbers) + 1)]
    records = [0] * len(numbers)
    for place, own in by_place.items():
        for at, offset in enumerate(_bounds(own, numbers)):
            bounds[at][place] = offset
    for bucket in found:
        records[max(at for at, number in enumerate(numbers) if number <= bucket.number)] += bucket.records
    return Steps(bounds, records)


def _first_numbers(found: Iterable[Bucket], most: int) -> list[int]:
    """The number of the bucket with which each step begins."""
    counts: dict[int, int] = defaultdict(int)
    for bucket in found:
        counts[bucket.number] += bucket.records
    numbers: list[int] = []
    held = 0
    for number, count in sorted(counts.items()):
        if not numbers or held + count > most:
            numbers.append(number)
            held = 0
        held += count
    return numbers


def _bounds(own: list[Bucket], numbers: Sequence[int]) -> list[int]:
    """The first offset of each step in a partition, and the end: timestamps need not ascend with the offsets."""
    own = sorted(own, key=lambda bucket: bucket.number)
    end = max(bucket.last for bucket in own) + 1
    # The first offset of all buckets from each one on.
    following = list(accumulate((bucket.first for bucket in reversed(own)), min))[::-1]
    starts = [
        next((first for bucket, first in zip(own, following, strict=True) if bucket.number >= number), end)
        for number in numbers
    ]
    return [*starts, end]
