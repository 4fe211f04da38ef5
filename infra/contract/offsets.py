"""Offsets of Kafka's log: the one form in which the code holds them, and the form in which they are stored as JSON."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

Partition = tuple[str, int]  # topic, number
Offsets = dict[Partition, int]  # partition -> the next offset to read
# Topic -> number of the partition -> offset: the form of Spark's options, of its offset log and of our stored plans.
NestedOffsets = dict[str, dict[int, int]]


def to_nested(offsets: Mapping[Partition, int]) -> NestedOffsets:
    """Offsets by topic, then by partition."""
    nested: NestedOffsets = {}
    for (topic, number), offset in offsets.items():
        nested.setdefault(topic, {})[number] = offset
    return nested


def from_nested(nested: Mapping[str, Mapping[Any, int]]) -> Offsets:
    """Offsets by (topic, partition). The numbers of partitions may be strings, as JSON's keys are."""
    return {(topic, int(number)): offset for topic, found in nested.items() for number, offset in found.items()}


def _read(offsets: Any) -> Any:
    is_nested = isinstance(offsets, Mapping) and all(isinstance(found, Mapping) for found in offsets.values())
    return from_nested(offsets) if is_nested else offsets


# The field of a pydantic model that holds offsets: nested in JSON, and taken in both forms.
StoredOffsets = Annotated[Offsets, BeforeValidator(_read), PlainSerializer(to_nested)]
