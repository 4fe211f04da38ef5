"""Places shards evenly on Spark's tasks: with N tasks, shard n is folded by task n modulo N.

Spark chooses the task of a group by the hash of its key. With the shard alone as the key, three of four shards fell to
one of two tasks. So the key has a second column, `salt`, chosen so that the hash of both is the number of the shard.

The hash is Spark's: MurmurHash3_x86_32 (Austin Appleby, public domain) of a key's columns, each with the hash of those
before it as its seed, the first with 42. Each of its steps can be undone.
"""

import numpy as np
from pyspark.sql import Column
from pyspark.sql import functions as F

SHARDS = 1024  # shards from this number on have the salt 0: they are placed by hash

_BITS = 2**32
_SEED = 42
_C1, _C2, _FACTOR, _TERM = 0xCC9E2D51, 0x1B873593, 5, 0xE6546B64
_END1, _END2 = 0x85EBCA6B, 0xC2B2AE35
_LENGTH = 4  # bytes of an integer


def salted(shard: Column) -> Column:
    """The salts of a column of shard numbers, as the integer column `salt`."""
    salts = np.array([salt(number) for number in range(SHARDS)], dtype=np.int32)
    return F.coalesce(F.get(F.lit(salts), shard), F.lit(0)).alias("salt")


def salt(shard: int) -> int:
    """The 32-bit integer for which Spark's `hash(shard, salt)` is `shard`."""
    wanted = shard ^ shard >> 16
    wanted = wanted * pow(_END2, -1, _BITS) % _BITS
    wanted ^= wanted >> 13 ^ wanted >> 26
    wanted = wanted * pow(_END1, -1, _BITS) % _BITS
    wanted ^= wanted >> 16
    mixed = ((wanted ^ _LENGTH) - _TERM) * pow(_FACTOR, -1, _BITS) % _BITS
    value = (_rotate_left(mixed, 32 - 13) ^ _hash(shard, _SEED)) * pow(_C2, -1, _BITS) % _BITS
    value = _rotate_left(value, 32 - 15) * pow(_C1, -1, _BITS) % _BITS
    return value - _BITS if value >= _BITS // 2 else value


def _hash(value: int, seed: int) -> int:
    value = _rotate_left(value * _C1 % _BITS, 15) * _C2 % _BITS
    found = (_rotate_left(seed ^ value, 13) * _FACTOR + _TERM) % _BITS
    found ^= _LENGTH
    found = (found ^ found >> 16) * _END1 % _BITS
    found = (found ^ found >> 13) * _END2 % _BITS
    return found ^ found >> 16


def _rotate_left(value: int, by: int) -> int:
    return (value << by | value >> 32 - by) % _BITS
