"""Watermark records: how a topic says how far event time has come.

A watermark record has no key and one field. It promises that no event earlier than its time follows in its partition.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from infra.errors import UserError

FIELD = "watermark_unix_nano"  # nanoseconds since the Unix epoch
_FIELD_UNTIL_0_1_0 = "tick_unix_nano"


class OldRecordError(UserError):
    """A record that an older version has written in a form that this one no longer reads."""


def watermark_of(record: Mapping[str, Any]) -> int | None:
    """The time, in nanoseconds, of a parsed record if it is a watermark record; else None.

    Raises OldRecordError, saying what to do, for a watermark record of version 0.1.0: to pass over it would keep
    windows open for ever.
    """
    if _FIELD_UNTIL_0_1_0 in record:
        raise OldRecordError(
            "the topic holds watermark records of version 0.1.0 (tick_unix_nano): replay the telemetry through this "
            "version, which writes topics of its own: kappa replay start --job enrichment --from earliest --as NAME"
        )
    return record.get(FIELD)


def is_watermark(record: Mapping[str, Any]) -> bool:
    """Whether a parsed record is a watermark record, of this version or of 0.1.0: for readers that pass over them."""
    return FIELD in record or _FIELD_UNTIL_0_1_0 in record


def watermark_value(time_unix_nano: int) -> bytes:
    """The value of a watermark record."""
    return orjson.dumps({FIELD: time_unix_nano})
