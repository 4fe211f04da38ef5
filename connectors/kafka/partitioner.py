"""The partition that Kafka's Java clients choose for a key, for what must lie as in Kafka without having been there.

MurmurHash2 (Austin Appleby, public domain) as `org.apache.kafka.common.utils.Utils.murmur2` has it.
"""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
import pyarrow as pa

_MASK = 0xFFFFFFFF
_FACTOR, _ROTATION, _SEED = 0x5BD1E995, 24, 0x9747B28C


@lru_cache(maxsize=100_000)
def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a record with this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


def partitions_of(topics: pa.Array, keys: pa.Array, partitions: Mapping[str, int]) -> pa.Array:
    """The same of many records, as int32: of topics with so many partitions. Each different key is hashed once."""
    topic, key = topics.dictionary_encode(), keys.fill_null(b"").dictionary_encode()
    hashes = np.array([murmur2(one) & 0x7FFFFFFF for one in key.dictionary.to_pylist()], np.int64)
    counts = np.array([partitions[one] for one in topic.dictionary.to_pylist()], np.int64)
    return pa.array((hashes[key.indices.to_numpy()] % counts[topic.indices.to_numpy()]).astype(np.int32))


def murmur2(data: bytes) -> int:
    """The hash as a 32-bit number without a sign."""
    found = _SEED ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        part = int.from_bytes(data[at : at + 4], "little") * _FACTOR & _MASK
        part = (part ^ part >> _ROTATION) * _FACTOR & _MASK
        found = found * _FACTOR & _MASK ^ part
    if rest := data[whole:]:
        found = (found ^ int.from_bytes(rest, "little")) * _FACTOR & _MASK
    found = (found ^ found >> 13) * _FACTOR & _MASK
    return found ^ found >> 15
