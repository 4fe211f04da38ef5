"""Watermark records: how a topic says how far event time has come.

A watermark record has no key and one field. It promises that no event earlier than its time follows in its partition.
"""

from collections.abc import Mapping
from typing import Any

import orjson

FIELD = "watermark_unix_nano"  # nanoseconds since the Unix epoch


def watermark_of(record: Mapping[str, Any]) -> int | None:
    """The time, in nanoseconds, of a parsed record if it is a watermark record; else None."""
    return record.get(FIELD)


def is_watermark(record: Mapping[str, Any]) -> bool:
    """Whether a parsed record is a watermark record: for readers that pass over them."""
    return FIELD in record


def watermark_value(time_unix_nano: int) -> bytes:
    """The value of a watermark record."""
    return orjson.dumps({FIELD: time_unix_nano})
