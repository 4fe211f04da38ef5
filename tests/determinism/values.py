"""Hashes over what a recorded hour gives, whatever its fields are called now.

They prove that renaming a field, or moving the code that writes it, changed nothing else.
"""

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any

import orjson

# Fields that have another name than at the recorded version: today's name -> the name that it had.
FORMER_NAMES = {"watermark_unix_nano": "tick_unix_nano", "novelty_record": "told"}
# Values that have another name: field -> today's value -> the one that it was.
FORMER_VALUES = {"statistic": {"sustained_deviation": "spell"}}


def with_former_names(value: Any, former: Mapping[str, str]) -> Any:
    """A JSON value whose fields, and values of FORMER_VALUES, have the names that they had."""
    if isinstance(value, dict):
        fields = {name: _former_value(name, field) for name, field in value.items()}
        return {former.get(name, name): with_former_names(field, former) for name, field in fields.items()}
    if isinstance(value, list):
        return [with_former_names(item, former) for item in value]
    return value


def _former_value(field: str, value: Any) -> Any:
    return FORMER_VALUES.get(field, {}).get(value, value) if isinstance(value, str) else value


def digest(records: Iterable[tuple[int, bytes, bytes]], former: Mapping[str, str] | None = None) -> str:
    """SHA-256 over (partition, key, JSON value) of records in their order, with the names that fields had."""
    known = FORMER_NAMES if former is None else former
    found = sha256()
    for partition, key, value in records:
        content = orjson.dumps(with_former_names(orjson.loads(value), known))
        found.update(b"%d %s %d %s" % (partition, key, len(content), content))
    return found.hexdigest()
