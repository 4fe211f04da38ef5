"""Decoders, one module a wire format: Kafka source rows in, machines' batches of events out.

A module named as a `format` of `infra/topics.yaml` has `decode(df)`: the Kafka columns (key, value, topic, partition,
offset, timestamp) come out as they went in, with the columns of `jobs.schemas.DECODED` beside them.

- One row a machine's batch; a record that can't be decoded gives exactly one row.
- No data point or log line vanishes: one that is unusable by itself is an event whose `value` or `time_unix_nano` is
  null. `error` says why a row can't be used as a whole; its `events` is null only where their number isn't known.
- Nothing raises: whatever the bytes are, there is a row.
"""

import importlib
import pkgutil
from collections.abc import Callable

from pyspark.sql import DataFrame

from infra.errors import UserError

Decoder = Callable[[DataFrame], DataFrame]

_HELPERS = {"columns", "otlp", "otlp_arrow"}


def formats() -> list[str]:
    """Names of the wire formats that have a decoder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _HELPERS)


def decoder(name: str) -> Decoder:
    """The decoder of a wire format; UserError for an unknown one."""
    if name not in formats():
        raise UserError(f"format: no decoder is named {name!r}; use one of {', '.join(formats())}")
    decode: Decoder = importlib.import_module(f"{__name__}.{name}").decode
    return decode
