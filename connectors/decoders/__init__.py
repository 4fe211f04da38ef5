"""Decoders, one module a wire format: Kafka source rows in, machines' batches of events out.

A module named as a `format` of `infra/topics.yaml` has `decode(df)`: the Kafka columns (key, value, topic, partition,
offset, timestamp) come out as they went in, with the columns of `infra.contract.schemas.DECODED` beside them (`value`
may be null where it was decoded).

- One row a machine's batch; a record that can't be decoded gives exactly one row.
- No data point or log line vanishes: one that is unusable by itself is an event whose `value` or `time_unix_nano` is
  null. `error` says why a row can't be used as a whole.
- Nothing raises: whatever the bytes are, there is a row.
"""

import importlib
import pkgutil
from collections.abc import Callable

from pyspark.sql import DataFrame

from infra.errors import UserError

Decoder = Callable[[DataFrame], DataFrame]

IN_PYTHON = {"otlp_logs_proto", "otlp_metrics_proto"}  # their decoders need Python's workers
_HELPERS = {"columns", "jvm", "otlp", "otlp_arrow", "otlp_values", "records"}


def formats() -> list[str]:
    """Names of the wire formats that have a decoder, sorted."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _HELPERS)


def decoder(name: str) -> Decoder:
    """The decoder of a wire format.

    Raises UserError for an unknown format.
    """
    if name not in formats():
        raise UserError(f"format: no decoder is named {name!r}; use one of {', '.join(formats())}")
    decode: Decoder = importlib.import_module(f"{__name__}.{name}").decode
    return decode
