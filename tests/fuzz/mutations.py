"""Records of the internal topics, broken in every way that a seeded generator thinks of."""

import json
import random
from collections.abc import Callable
from typing import Any

DEEP: Any = None
for _ in range(400):
    DEEP = [DEEP]

# What stands in place of a value: of other types, too large, too long, too deep, empty, not finite.
ODD = (
    *(None, True, False, 0, -1, 1, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30),
    *(0.5, -0.0, 1e308, -1e308, 1e-320, float("nan"), float("inf")),
    *("", "x", "\x00", "é" * 40, "x" * 2_000, "9" * 30, "*", "[", "metric", "log", "control", "start", "silence"),
    *([], {}, [None], [[]], [{}], {"": {}}, {"x": {"y": {"z": [1]}}}, DEEP),
)
NAMES = ("series", "labels", "value", "histogram", "time_unix_nano", "watermark_unix_nano", "kind", "machine", "extra")
Mutation = Callable[[random.Random, bytes], bytes]


def mutated(rng: random.Random, value: bytes) -> bytes:
    """The record with one to three faults; now and then it is as good as it was."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = rng.choice(MUTATIONS)(rng, value)
    return value


def _flip(rng: random.Random, value: bytes) -> bytes:
    if not value:
        return b"\x00"
    at = rng.randrange(len(value))
    return value[:at] + bytes([rng.randrange(256)]) + value[at + 1 :]


def _cut(rng: random.Random, value: bytes) -> bytes:
    begin, end = sorted((rng.randrange(len(value) + 1), rng.randrange(len(value) + 1)))
    return value[:begin] + value[end:] if rng.random() < 0.5 else value[begin:end]


def _insert(rng: random.Random, value: bytes) -> bytes:
    at, more = rng.randrange(len(value) + 1), rng.choice((b'"', b"{", b"]", b",", b"\xff", b"null", b',"series":['))
    return value[:at] + more + value[at:]


def _in_tree(change: Callable[[random.Random, Any, Any], None]) -> Mutation:
    """A change at a random place of the JSON; a record that is none stays as it is."""

    def apply(rng: random.Random, value: bytes) -> bytes:
        try:
            tree = json.loads(value)
            places = list(_places(tree))
        except (ValueError, RecursionError):
            return value
        if not places:
            return json.dumps(rng.choice(ODD)).encode()
        change(rng, *rng.choice(places))
        try:
            return json.dumps(tree, separators=(",", ":")).encode()
        except (RecursionError, ValueError):
            return value

    return apply


def _places(tree: Any, depth: int = 0):
    """(container, key or index) of each value."""
    if depth < 8 and isinstance(tree, dict | list):
        for key in tree if isinstance(tree, dict) else range(len(tree)):
            yield tree, key
            yield from _places(tree[key], depth + 1)


def _replace(rng: random.Random, holder: Any, key: Any) -> None:
    holder[key] = rng.choice(ODD)


def _remove(rng: random.Random, holder: Any, key: Any) -> None:
    del holder[key]


def _add(rng: random.Random, holder: Any, key: Any) -> None:
    if isinstance(holder, dict):
        holder[rng.choice(NAMES)] = rng.choice(ODD)
    else:
        holder.insert(key, rng.choice(ODD))


def _double(rng: random.Random, holder: Any, key: Any) -> None:
    if isinstance(holder[key], list):
        holder[key] = holder[key] * rng.choice((0, 2, 3))
    elif isinstance(holder[key], int | float) and not isinstance(holder[key], bool):
        holder[key] = holder[key] * rng.choice((-1, 1000, 1e-9, 10**12))
    else:
        holder[key] = [holder[key]]


def _swap(rng: random.Random, holder: Any, key: Any) -> None:
    other = rng.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
    holder[key], holder[other] = holder[other], holder[key]


MUTATIONS: tuple[Mutation, ...] = (
    _flip,
    _cut,
    _insert,
    *map(_in_tree, (_replace, _replace, _remove, _add, _double, _swap)),
)
