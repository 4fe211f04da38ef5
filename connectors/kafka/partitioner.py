"""The partition that Kafka's Java clients choose for a key, for what must lie as in Kafka without having been there.

MurmurHash2 (Austin Appleby, public domain) as `org.apache.kafka.common.utils.Utils.murmur2` has it.
"""

from functools import lru_cache

_MASK = 0xFFFFFFFF
_FACTOR, _ROTATION, _SEED = 0x5BD1E995, 24, 0x9747B28C


@lru_cache(maxsize=100_000)
def partition_of(key: bytes, partitions: int) -> int:
    """The partition of a record with this key."""
    return (murmur2(key) & 0x7FFFFFFF) % partitions


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
