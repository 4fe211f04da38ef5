import pyarrow as pa
import pytest

from connectors.kafka.partitioner import murmur2, partition_of, partitions_of


# Of Kafka's own UtilsTest.
@pytest.mark.parametrize(
    ("data", "found"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_it_is_the_hash_of_kafkas_clients(data, found):
    assert murmur2(data) == found % 2**32


def test_a_key_has_one_of_the_partitions():
    assert [partition_of(b"vm-%02d" % n, 4) for n in range(4)] == [
        (murmur2(b"vm-%02d" % n) & 0x7FFFFFFF) % 4 for n in range(4)
    ]


def test_many_records_get_the_partitions_that_each_would_get_alone():
    counts = {"events": 4, "statistics": 7}
    topics = ["events", "statistics", "statistics", "events", "statistics"]
    keys = [b"vm-01", b"vm-01", None, None, b"\x00\xff"]
    found = partitions_of(pa.array(topics), pa.array(keys, pa.binary()), counts)
    assert found.type == pa.int32()
    assert found.to_pylist() == [
        partition_of(key or b"", counts[topic]) for topic, key in zip(topics, keys, strict=True)
    ]
    assert partitions_of(pa.array([], pa.string()), pa.array([], pa.binary()), counts).to_pylist() == []
